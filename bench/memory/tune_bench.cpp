// SPDX-License-Identifier: Apache-2.0
// Is the choice of `stoker tune` right? Searches the microbatch of a run as tune does, then checks both answers by
// plain means: the largest size by bisection, the fastest by a sweep over all powers of two. The choice and the sweep's
// best then compute the run's batch in 30 turns.
//     tune_bench PAIRS DATA [OPTION=VALUE...]        options as for `stoker tune`
// Prints FAILED and exits with 1 if the largest size is more than 5 % below the true one, or if the search made more
// than 8 probes. Prints MISSED if the search took longer than 60 s, or if the interval of the choice's time against the
// sweep's best begins above +5 %.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/process.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"
#include "stoker/job/tune.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/train/step.h"
#include "turns.h"

namespace stoker::bench {
namespace {

// What the search promises: the share that it may be from the truth, of memory and of time; probes; seconds.
constexpr double kClose = 0.05;
constexpr std::size_t kProbes = 8;
constexpr double kLongest = 60;

struct Size {
  std::int64_t samples = 0;
  std::vector<double> seconds = {};
};

// The batch of a run, computed in passes of any size. Nothing is committed.
class Steps {
 public:
  explicit Steps(job::Setup& setup)
      : setup_(setup),
        // Without state: run() keeps the run's free.
        optimizer_(optim::make_optimizer({.name = "sgd", .momentum = 0}, setup.model->parameters())),
        step_({*setup.model, *optimizer_, scaler_, ranks_},
              {.autocast = setup.autocast_dtype(),
               .clip = setup.plan.clip,
               .recompute = memory::parse_recompute(setup.plan.recompute)}),
        batch_(*setup.training_source({})->next()) {}

  [[nodiscard]] std::int64_t batch() const { return batch_.size(); }
  double seconds(std::int64_t samples) {
    const Stopwatch watch;
    step_.compute(batch_, 0, samples);
    device::backend_for(setup_.device).synchronize(setup_.device);
    const double result = watch.seconds();
    step_.drop();
    return result;
  }
  // One pass of this many samples and, unless it is the whole batch, a second one that adds its gradients.
  bool fits(std::int64_t samples) {
    try {
      step_.compute(job::rows_repeated(batch_, samples < batch() ? 2 * samples : samples), 0, samples);
      step_.drop();
      return true;
    } catch (const std::exception& error) {
      memory::rethrow_unless_out_of_memory(error);
      device::backend_for(setup_.device).release_cache(setup_.device);
      return false;
    }
  }
  // By bisection, from a size that fits.
  std::int64_t most_that_fit(std::int64_t low) {
    std::int64_t high = batch() + 1;
    while (high - low > std::max<std::int64_t>(1, low / 200)) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

 private:
  job::Setup& setup_;
  core::SingleRank ranks_;
  precision::GradScaler scaler_{{.scaling = false}, setup_.device};
  std::unique_ptr<optim::Optimizer> optimizer_;
  train::Step step_;
  core::Batch batch_;
};

// Powers of two up to the largest, and the largest itself, timed in turns.
std::vector<Size> sweep(Steps& steps, std::int64_t largest, int rounds) {
  std::vector<Size> sizes;
  for (std::int64_t samples = 4; samples < largest; samples *= 2) {
    sizes.push_back({samples});
  }
  sizes.push_back({largest});
  for (const Size& each : sizes) {
    (void)steps.seconds(each.samples);  // kernels are built for new shapes
  }
  take_turns(sizes, rounds, [&](const Size& each) { return steps.seconds(each.samples); });
  return sizes;
}

// Whether the search promised the truth about memory. What it promised about time is only printed: noise must not
// decide about the exit code.
bool compare(const job::Tuned& tuned, Steps& steps, int pairs) {
  const memory::Found& found = tuned.passes.found;
  const std::int64_t most = steps.most_that_fit(found.largest), chosen = tuned.plan.microbatch;
  const bool close = static_cast<double>(found.largest) >= (1 - kClose) * static_cast<double>(most);
  fmt::print("largest: {} by the search, {} by bisection{}\n", found.largest, most, close ? "" : ": FAILED");
  const bool few = found.probes.size() <= kProbes;
  fmt::print("{} probes in {:.1f} s{}\n", found.probes.size(), found.seconds,
             !few                       ? ": FAILED"
             : found.seconds > kLongest ? ": MISSED"
                                        : "");
  const std::vector<Size> sizes = sweep(steps, found.largest, /*rounds=*/3);
  fmt::print("sweep, batches of {}, ms per batch:", steps.batch());
  for (const Size& each : sizes) {
    fmt::print(" {}: {:.1f}", each.samples, 1e3 * study::median_of(each.seconds));
  }
  const std::int64_t best =
      std::ranges::min_element(sizes, {}, [](const Size& each) { return study::median_of(each.seconds); })->samples;
  std::vector<Size> two = {{chosen}, {best}};
  (void)steps.seconds(chosen);
  take_turns(two, pairs, [&](const Size& each) { return steps.seconds(each.samples); });
  const study::Ratio ratio = study::ratio_of(two[0].seconds, two[1].seconds);
  fmt::print("\nchoice {} against the sweep's best {}: time {} in {} pairs{}\n", chosen, best,
             time_against(two[0].seconds, two[1].seconds), pairs, ratio.low <= 1 + kClose ? "" : ": MISSED");
  return close && few;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "tune_bench PAIRS DATA [OPTION=VALUE...]\n");
    return 2;
  }
  job::start_process();
  const std::vector<std::string> words(argv + 3, argv + argc);
  job::Request request = job::make_request({}, words);
  request.data = argv[2];
  std::string shown;
  for (const std::string& word : words) {
    shown += " " + word;
  }
  fmt::print("\n{}: {}{}\n", job::version_text(), request.data.filename().native(), shown);
  const auto silent = [](const std::string&) {};
  const job::Tuned tuned = job::tune(request, silent);
  request.options.set("microbatch", std::to_string(tuned.plan.microbatch));
  job::Setup setup = job::set_up(request, nullptr, silent);
  setup.set_switches();
  if (setup.plan.memory_limit > 0) {  // what the run will make before its first step is kept free
    const job::HeldBytes held = job::held_by_run(setup);
    device::backend_for(setup.device)
        .limit_memory(setup.device, setup.plan.memory_limit - held.optimizer - held.averages);
  }
  Steps steps(setup);
  const bool good = compare(tuned, steps, std::stoi(argv[1]));
  std::fflush(stdout);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("tune_bench", stoker::bench::run, argc, argv); }
