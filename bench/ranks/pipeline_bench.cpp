// SPDX-License-Identifier: Apache-2.0
// The share of a step in which a stage of a pipeline waits, beside the ideal (P - 1) / (M + P - 1) of 1F1B: a model
// whose compute sleeps, in P stages and M microbatches, and the same model in one process, in turns. Ranks are threads
// of this process, over Gloo on loopback.
//
//     pipeline_bench [--quick]
//
// Exit code 1 if a median is not within 10 % of the ideal.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/optim/optimizer.h"
#include "stoker/parallel/pipeline_schedule.h"
#include "stoker/parallel/process_group.h"
#include "stoker/parallel/stages.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/study/ranks_bench/sleeping_model.h"
#include "stoker/train/step.h"

namespace stoker::bench {
namespace {

namespace fs = std::filesystem;
constexpr int kSegments = 4;
constexpr double kWithin = 0.1;

core::Batch batch_of(std::int64_t samples) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) {
    indices.push_back(i);
  }
  core::Batch batch({}, std::move(indices));
  batch.set("x", at::zeros({samples}, at::kFloat));
  return batch;
}

// Seconds of each step but the first.
std::vector<double> steps_of(core::Communicator& ranks, int stages, std::int64_t passes, int steps,
                             std::chrono::microseconds forward) {
  study::SleepingModel model({.segments = kSegments, .values = 1 << 10, .forward = forward, .backward = 2 * forward});
  std::vector<int> firsts;
  for (int stage = 1; stage < stages; ++stage) {
    firsts.push_back(stage * kSegments / stages);
  }
  std::unique_ptr<parallel::Stages> cut;
  if (stages > 1) {
    cut = std::make_unique<parallel::Stages>(ranks, model, firsts);
  }
  const auto optimizer =
      optim::make_optimizer({.name = "sgd", .momentum = 0}, cut ? cut->own_parameters() : model.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  train::Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .stages = cut.get()},
                   {});
  const core::Batch batch = batch_of(passes);
  std::vector<double> seconds;
  for (int number = 0; number <= steps; ++number) {
    ranks.barrier();
    const Stopwatch watch;
    step.compute(batch, number, 1);
    step.commit(0.1);
    if (number > 0) {
      seconds.push_back(watch.seconds());
    }
  }
  return seconds;
}

// Of rank 0.
std::vector<double> over_gloo(int ranks, const fs::path& meeting, std::int64_t passes, int steps,
                              std::chrono::microseconds forward) {
  std::vector<double> seconds;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          parallel::Place place;
          place.rank = place.local_rank = rank;
          place.ranks = place.local_ranks = ranks;
          place.meeting.file = meeting.native();
          const auto group = parallel::join(place);
          std::vector<double> own = steps_of(*group, ranks, passes, steps, forward);
          if (rank == 0) {
            seconds = std::move(own);
          }
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return seconds;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(int count, char** words) {
  const bool quick = count > 1 && std::string_view(words[1]) == "--quick";
  const int repeats = quick ? 1 : 5, steps = quick ? 1 : 3;
  const std::chrono::microseconds forward(quick ? 2'000 : 10'000);
  at::set_num_threads(1);
  const fs::path folder = fs::temp_directory_path() / fmt::format("stoker-pipeline-bench-{}", ::getpid());
  fs::create_directories(folder);
  int meeting = 0;
  bool met = true;
  for (const int stages : {2, 4}) {
    for (const std::int64_t passes : {4, 8, 16}) {
      std::vector<double> bubbles;
      for (int repeat = 0; repeat < repeats; ++repeat) {
        core::SingleRank alone;
        const double whole = median_of(steps_of(alone, 1, passes, steps, forward));
        const double cut = median_of(over_gloo(stages, folder / std::to_string(meeting++), passes, steps, forward));
        bubbles.push_back(1 - whole / (stages * cut));
      }
      const double ideal = parallel::ideal_bubble(stages, static_cast<int>(passes)), found = median_of(bubbles);
      const bool near = std::abs(found / ideal - 1) <= kWithin;
      met = met && near;
      fmt::print("{} stages, {:2} passes: waits for {:.4f} of a step [{:.4f} to {:.4f}], ideal {:.4f}: {:+.1f} %{}\n",
                 stages, passes, found, std::ranges::min(bubbles), std::ranges::max(bubbles), ideal,
                 100 * (found / ideal - 1), near ? "" : ", missed");
    }
  }
  fs::remove_all(folder);
  return met || quick ? 0 : 1;
}

}  // namespace
}  // namespace stoker::bench

int main(int count, char** words) {
  return stoker::bench::bench_main("pipeline_bench", stoker::bench::run, count, words);
}
