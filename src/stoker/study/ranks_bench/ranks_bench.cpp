// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/ranks_bench.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "stoker/base/error.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/job/process.h"
#include "stoker/parallel/place.h"
#include "stoker/parallel/process_group.h"
#include "stoker/parallel/siblings.h"
#include "stoker/precision/policy.h"
#include "stoker/study/ranks_bench/rank_steps.h"
#include "stoker/study/ranks_bench/sleeping_model.h"
#include "stoker/study/tips/bench_model.h"

namespace stoker::study {
namespace {

constexpr std::string_view kWhere = "study.ranks";
constexpr int kLeastAsMost = 4;  // without ranks=: the check of the forecast needs 1, 2 and 4
constexpr int kMostForecast = 1024, kFirstForecast = 8;

int gpus() {
  const device::Backend* const backend = device::find_backend(c10::DeviceType::CUDA);
  return backend != nullptr ? backend->device_count() : 0;
}

c10::Device device_for(const RanksBenchOptions& options, int rank_here) {
  return device::choose_device(device::device_of_rank(options.device, rank_here, gpus())).device;
}

StepCase model_case(const RanksBenchOptions& options, c10::Device device) {
  BenchModel made = make_bench_model(options.model, {.device = device, .batch = options.batch, .seed = 1});
  made.model->set_training(true);
  return {.model = std::move(made.model), .batch = std::move(made.batch), .optimizer = made.optimizer, .lr = 1e-6};
}

StepCase sleeping_case(c10::Device device) {
  return {.model = std::make_unique<SleepingModel>(SleepingOptions{.device = device}),
          .batch = SleepingModel::batch(device),
          .optimizer = {.name = "sgd"},
          .lr = 1};
}

// On all ranks of the communicator.
MeasuredRanks measure(core::Communicator& ranks, const RanksBenchOptions& options, const Effort& effort) {
  MeasuredRanks result;
  result.ranks = ranks.size();
  if (ranks.size() > 1) {
    result.sums = time_sums(ranks, effort);
    result.exchange_s = time_exchange(ranks, effort);
  }
  StepCase model = model_case(options, effort.device), sleeping = sleeping_case(effort.device);
  effort.say(fmt::format("{} ranks: steps of {}", ranks.size(), options.model));
  result.step_s = time_steps(ranks, model, effort);
  effort.say(fmt::format("{} ranks: steps that sleep", ranks.size()));
  result.sleeping_s = time_steps(ranks, sleeping, effort);
  return result;
}

// The same; an error here reaches the other ranks.
MeasuredRanks measure_among(core::Communicator& ranks, const RanksBenchOptions& options, const Effort& effort) {
  MeasuredRanks result;
  try {
    job::with_typed_errors([&] { result = measure(ranks, options, effort); });
    ranks.barrier();
  } catch (const std::exception& error) {
    ranks.leave(error);
    throw;
  }
  return result;
}

MeasuredRanks measure_copies(int count, const RanksBenchOptions& options, const Effort& effort) {
  parallel::Siblings siblings(count);
  parallel::GroupOptions meeting;
  meeting.while_waiting = [&siblings] { siblings.check(); };
  return measure_among(*parallel::join(siblings.place(), meeting), options, effort);
}

void measure_alone(RanksBench& bench, const RanksBenchOptions& options, const Effort& effort) {
  core::SingleRank alone;
  bench.measured.push_back(measure(alone, options, effort));
  StepCase model = model_case(options, effort.device), sleeping = sleeping_case(effort.device);
  bench.batch = model.batch.size();
  bench.parameters = core::parameter_count(model.model->parameters());
  effort.say("1 rank: when its gradients are ready");
  bench.course = record_steps(model, effort);
  bench.sleeping = record_steps(sleeping, effort);
}

void add(RanksBench& bench, MeasuredRanks measured) {
  if (!bench.link && measured.sums.size() == std::size(kSumBytes)) {
    bench.link = fit_link(measured.sums, measured.ranks);
    bench.link->exchange_latency_s = measured.exchange_s / (measured.ranks - 1);
    bench.link_ranks = measured.ranks;
  }
  if (measured.step_s > 0 && measured.sleeping_s > 0) {  // otherwise it was stopped
    bench.measured.push_back(std::move(measured));
  }
}

// The ranks that a starter made: all of them measure alone first, at the same time.
void measure_started(RanksBench& bench, const parallel::Place& place, const RanksBenchOptions& options,
                     const Effort& effort) {
  parallel::end_with_starter();
  if (place.ranks < 2) {
    fail<ConfigError>(kWhere, "{} started one rank; start at least two", place.starter);
  }
  const auto ranks = parallel::join(place);
  if (place.starter != "ranks=") {
    core::together(*ranks, [&] { measure_alone(bench, options, effort); });
  }
  add(bench, measure_among(*ranks, options, effort));
}

}  // namespace

bool is_first_rank() {
  const auto place = parallel::place_of(parallel::process_environment());
  return !place || place->rank == 0;
}

RanksBench bench_ranks(const RanksBenchOptions& options) {
  RanksBench bench;
  bench.model = options.model;
  bench.text = bench_model(options.model).text;
  bench.device = options.device;
  bench.cores = device::cpu_quota().cores;
  bench.intra_op = options.intra_op;
  if (options.ranks == 1) {
    fail<ConfigError>(kWhere, "--ranks 1 leaves nothing to compare; set at least 2");
  }
  at::set_num_threads(options.intra_op);
  precision::apply({.deterministic = true});  // a plan's defaults on a CPU
  const auto place = parallel::place_of(parallel::process_environment());
  Effort effort{
      .device = device_for(options, place ? place->local_rank : 0), .seconds = options.seconds, .stop = options.stop};
  if (is_first_rank()) {
    effort.say = options.say;
  }
  if (place) {
    measure_started(bench, *place, options, effort);
  } else {
    measure_alone(bench, options, effort);
    const int all = effort.device.is_cpu() ? std::max(kLeastAsMost, bench.cores) : gpus();
    const int most = options.ranks > 0 ? options.ranks : all;
    for (int ranks = 2; ranks <= most && !options.stop(); ranks *= 2) {
      add(bench, measure_copies(ranks, options, effort));
    }
  }
  bench.stopped = options.stop();
  if (bench.link && (options.latency_s > 0 || options.bytes_per_s > 0)) {
    bench.asked = *bench.link;
    if (options.latency_s > 0) {
      bench.asked->latency_s = bench.asked->exchange_latency_s = options.latency_s;
    }
    bench.asked->bytes_per_s = options.bytes_per_s > 0 ? options.bytes_per_s : bench.asked->bytes_per_s;
  }
  return bench;
}

std::vector<Forecast> forecasts(const RanksBench& bench) {
  std::vector<Forecast> result;
  for (int ranks = kFirstForecast; bench.link && bench.course.seconds > 0 && ranks <= kMostForecast; ranks *= 2) {
    result.push_back(best_forecast(bench.course, bench.asked.value_or(*bench.link), ranks));
  }
  return result;
}

}  // namespace stoker::study
