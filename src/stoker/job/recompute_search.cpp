// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/recompute_search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/device/backend.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"
#include "stoker/memory/microbatch.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/memory/recompute_search.h"

namespace stoker::job {
namespace {

using memory::RecomputeFound;
using memory::RecomputeSet;
using memory::SegmentCost;
using Costs = std::vector<SegmentCost>;

constexpr std::int64_t kPart = 4;  // segments are measured on a part of a pass, as the whole one does not fit

// The search on a set-up whose passes do not fit.
class Search {
 public:
  explicit Search(const Setup& setup) : setup_(setup), probes_(setup, /*whole_batches=*/false) {
    const memory::Microbatch passes({.asked = setup.plan.microbatch, .smallest = smallest()});
    samples_ = passes.largest_pass(probes_.batch());
  }

  // The value of recompute=, and the reason.
  std::pair<std::string, std::string> choose() {
    probes_.recompute({});
    const memory::Probe plain = probes_.probe(samples_);
    if (plain.fits) {
      return {"none", fmt::format("auto: {}, so nothing is recomputed", needs(plain.bytes))};
    }
    if (!measure()) {
      const bool fits = probe("all").fits;
      return {"all", fmt::format("auto: a pass of {} does not fit{}, and segments cannot be told apart: {}",
                                 counted(samples_, "sample"), into(), fits ? "all are recomputed" : kNotEvenAll)};
    }
    memory::RecomputeSearch search{.limit = probes_.limit()};
    search.others = plain.bytes >= 0 ? plain.bytes - peak_of_none(costs_) : others();
    const RecomputeFound found = memory::find_recomputation(
        costs_, [&](const RecomputeSet& set) { return probe(memory::recompute_text(costs_, set)); }, search);
    return {memory::recompute_text(costs_, found.set), reason(found)};
  }

 private:
  static constexpr const char* kNotEvenAll = "not even recomputing all segments is enough, so smaller passes follow";

  [[nodiscard]] std::int64_t smallest() const { return setup_.couples_samples ? 2 : 1; }

  static std::int64_t peak_of_none(const Costs& costs) {
    return memory::activation_peak(costs, RecomputeSet(costs.size(), false));
  }

  memory::RecomputeProbe probe(const std::string& recompute) {
    probes_.recompute(memory::parse_recompute(recompute));
    const memory::Probe probe = probes_.probe(samples_);
    return {.fits = probe.fits, .bytes = probe.bytes, .seconds = probe.seconds};
  }

  // Fills costs_; false if segments cannot be chosen by what they cost.
  bool measure() {
    for (int segment = 0; segment < setup_.model->segments(); ++segment) {
      if (!memory::is_recompute(setup_.model->segment_name(segment))) {
        return false;
      }
    }
    for (part_ = std::max(smallest(), samples_ / kPart); probes_.limit() >= 0 && part_ >= smallest(); part_ /= 2) {
      try {
        part_costs_ = probes_.segment_costs(part_);
        scale();
        return true;
      } catch (const std::exception& error) {
        memory::rethrow_unless_out_of_memory(error);
        device::backend_for(setup_.device).release_cache(setup_.device);
      }
    }
    return false;
  }

  // From the part to the pass: what segments save and take grows with the samples.
  void scale() {
    costs_ = part_costs_;
    for (SegmentCost& each : costs_) {
      each.saved_bytes = each.saved_bytes * samples_ / part_;
      each.output_bytes = each.output_bytes * samples_ / part_;
      each.seconds *= static_cast<double>(samples_) / static_cast<double>(part_);
    }
  }

  // Bytes of a pass besides the segments' tensors, from a pass over the part: gradients, and what grows with samples.
  std::int64_t others() {
    const memory::Probe part = probes_.probe(part_);
    if (part.bytes < 0) {
      return 0;
    }
    const std::int64_t all = std::max<std::int64_t>(0, part.bytes - peak_of_none(part_costs_));
    const std::int64_t gradients = std::min(all, held_by_run(setup_).all_gradients);
    return gradients + (all - gradients) * samples_ / part_;
  }

  [[nodiscard]] std::string into() const {
    return probes_.limit() < 0 ? "" : fmt::format(" into the {} that are free", bytes_text(probes_.limit()));
  }

  // "a pass of 64 samples needs 212 MiB and 150 MiB are free"; about: "about ".
  [[nodiscard]] std::string needs(std::int64_t bytes, const char* about = "") const {
    if (bytes < 0 || probes_.limit() < 0) {
      return fmt::format("a pass of {} fits", counted(samples_, "sample"));
    }
    return fmt::format("a pass of {} needs {}{} and {} are free", counted(samples_, "sample"), about, bytes_text(bytes),
                       bytes_text(probes_.limit()));
  }

  [[nodiscard]] std::string reason(const RecomputeFound& found) const {
    if (!found.probe.fits) {
      return fmt::format("auto: a pass of {} does not fit{}: {}", counted(samples_, "sample"), into(), kNotEvenAll);
    }
    const std::string names = memory::recompute_text(costs_, found.set);
    const memory::RecomputeTrade trade = memory::trade_of(costs_, found);
    return fmt::format("auto: {}: recomputing {} keeps about {} less and adds about {:.0f} % time{}",
                       needs(found.kept_bytes, "about "), names == "all" ? "all segments" : names,
                       bytes_text(trade.less), 100 * trade.slower,
                       trade.poor ? "; that is little memory for the time: a smaller microbatch= may be faster" : "");
  }

  const Setup& setup_;
  StepProbes probes_;
  std::int64_t samples_ = 0;  // of a pass
  std::int64_t part_ = 0;     // samples that the segments were measured on
  Costs part_costs_, costs_;  // of the part, of the pass
};

}  // namespace

bool searches_recomputation(const train::Options& options) { return options.is_auto("recompute"); }

void choose_recomputation(Setup& setup) {
  std::pair<std::string, std::string> choice = {
      "none", "auto: the model offers one segment, so nothing can be recomputed alone"};
  if (setup.model->segments() > 1) {
    choice = Search(setup).choose();
  }
  train::decide(setup.plan, "recompute", choice.first, core::Origin::kMeasured, choice.second);
}

}  // namespace stoker::job
