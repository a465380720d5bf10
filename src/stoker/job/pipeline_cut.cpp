// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/pipeline_cut.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/parallel/pipeline_cut.h"
#include "stoker/parallel/pipeline_schedule.h"
#include "stoker/train/pipeline_plan.h"

namespace stoker::job {
namespace {

using memory::SegmentCost;

constexpr std::string_view kWhere = "job.pipeline";
// Backward computes two products for each one of forward (Kaplan et al., arXiv:2001.08361, section 2.1).
constexpr double kPasses = 3;
// What messages between processes of a machine move, about; not measured. Where times are alike, it keeps cuts away
// from large tensors.
constexpr double kBytesPerSecond = 1e9;

// Names tell the segments apart, and a list of names can hold them.
void check_names(const core::Trainable& model) {
  std::set<std::string> names;
  for (int segment = 0; segment < model.segments(); ++segment) {
    const std::string name = model.segment_name(segment);
    if (name.empty() || name.find(',') != std::string::npos || !names.insert(name).second) {
      fail<ConfigError>(kWhere,
                        "a pipeline needs segments with names of their own without a comma, but there is \"{}\"",
                        printable(name));
    }
  }
}

// Samples that were measured, and what each segment costs with them.
struct Measured {
  std::int64_t samples = 0;
  std::vector<SegmentCost> costs;
};

// With fewer samples than a pass if it does not fit.
Measured measure(const Setup& setup) {
  StepProbes probes(setup, /*whole_batches=*/false);
  const std::int64_t smallest = setup.couples_samples ? 2 : 1;
  Measured result{std::max(smallest, std::min(setup.plan.microbatch, probes.batch())), {}};
  while (true) {
    try {
      result.costs = probes.segment_costs(result.samples);
      return result;
    } catch (const std::exception& error) {
      memory::rethrow_unless_out_of_memory(error);
      device::backend_for(setup.device).release_cache(setup.device);
      if (result.samples == smallest) {
        throw;
      }
      result.samples = std::max(smallest, result.samples / 2);
    }
  }
}

std::vector<parallel::SegmentLoad> loads_of(const Setup& setup, const Measured& measured) {
  const std::int64_t part = std::max<std::int64_t>(1, setup.plan.batch / train::replicas(setup.plan));
  const double scale =
      static_cast<double>(std::min(setup.plan.microbatch, part)) / static_cast<double>(measured.samples);
  const auto scaled = [&](std::int64_t bytes) { return static_cast<std::int64_t>(static_cast<double>(bytes) * scale); };
  std::vector<parallel::SegmentLoad> loads;
  for (const SegmentCost& each : measured.costs) {
    parallel::SegmentLoad& own = loads.emplace_back();
    own.name = each.name;
    own.seconds = kPasses * each.seconds * scale;
    own.output_bytes = own.gradient_bytes = scaled(each.output_bytes);
    own.kept_bytes = scaled(each.output_bytes + (setup.plan.recompute == "all" ? 0 : each.saved_bytes));
  }
  const HeldBytes held = held_by_run(setup);
  const double state = static_cast<double>(held.gradients + held.optimizer) / static_cast<double>(held.weights);
  for (const core::Parameter& each : setup.model->parameters()) {
    if (each.tensor.requires_grad()) {
      loads[static_cast<std::size_t>(each.segments.front())].state_bytes +=
          static_cast<std::int64_t>(state * static_cast<double>(each.tensor.nbytes()));
    }
  }
  return loads;
}

std::vector<parallel::SharedParameter> shared_of(const core::Trainable& model) {
  std::vector<parallel::SharedParameter> shared;
  for (const core::Parameter& each : model.parameters()) {
    if (each.segments.size() > 1) {
      shared.push_back({each.name, each.segments});
      std::ranges::sort(shared.back().segments);
    }
  }
  return shared;
}

bool fits(const Setup& setup) {
  return std::ranges::count(setup.plan.pipeline_cut, ',') + 2 == setup.plan.pipeline &&
         !setup.plan.pipeline_cut.empty();
}

}  // namespace

PipelineCut choose_pipeline_cut(const Setup& setup, const Say& say) {
  const train::Plan& plan = setup.plan;
  const auto note = plan.notes.find("pipeline_cut");
  const bool asked =
      !plan.pipeline_cut.empty() && note != plan.notes.end() &&
      (note->second.origin == core::Origin::kConfig || note->second.origin == core::Origin::kCommandLine);
  if (asked || fits(setup)) {
    (void)train::first_segments(plan, *setup.model);
    return {};
  }
  check_names(*setup.model);
  say("measuring where to cut the model ...");
  parallel::PipelineLimits limits;
  limits.stages = static_cast<int>(plan.pipeline);
  const std::int64_t part = std::max<std::int64_t>(1, plan.batch / train::replicas(plan));
  limits.microbatches = static_cast<int>((part + plan.microbatch - 1) / plan.microbatch);
  limits.bytes_per_second = kBytesPerSecond;
  if (plan.memory_limit > 0) {  // each rank has all weights
    const HeldBytes held = held_by_run(setup);
    limits.bytes = std::max<std::int64_t>(1, plan.memory_limit - held.weights - held.averages);
  }
  const std::vector<parallel::PipelineStage> stages =
      parallel::cut_pipeline(loads_of(setup, measure(setup)), shared_of(*setup.model), limits);
  std::vector<std::string> names, times;
  for (const parallel::PipelineStage& each : stages) {
    if (each.first > 0) {
      names.push_back(setup.model->segment_name(each.first));
    }
    times.push_back(fmt::format("{:.3g}", 1e3 * each.seconds));
  }
  return {
      fmt::format("{}", fmt::join(names, ",")),
      fmt::format("a pass of {} takes the stages about {} ms; with {} passes they wait for {:.0f} % of a step at least",
                  counted(plan.microbatch, "sample"), fmt::join(times, ", "), limits.microbatches,
                  100 * parallel::ideal_bubble(limits.stages, limits.microbatches))};
}

}  // namespace stoker::job
