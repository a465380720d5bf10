// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/rank_steps.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/study/paired.h"
#include "stoker/study/ranks_bench/recording_rank.h"
#include "stoker/train/step.h"

namespace stoker::study {
namespace {

constexpr int kWarm = 3, kLeast = 5, kMost = 2000;  // calls

// Rank 0's number, on all ranks.
std::int64_t agreed(core::Communicator& ranks, std::int64_t own) {
  at::Tensor number = at::zeros({1}, at::kLong);
  number.mutable_data_ptr<std::int64_t>()[0] = own;
  ranks.broadcast(number, 0);
  return number.const_data_ptr<std::int64_t>()[0];
}

// Calls work as often as fits into the time; the seconds of each call. Empty: stopped.
std::vector<double> timed(core::Communicator& ranks, const Effort& effort, const std::function<void()>& work) {
  if (agreed(ranks, effort.stop() ? 1 : 0) != 0) {
    return {};
  }
  const device::Backend& backend = device::backend_for(effort.device);
  std::vector<double> seconds;
  Stopwatch watch;
  for (int i = 0; i < kWarm; ++i) {
    work();
    backend.synchronize(effort.device);
    seconds.push_back(watch.restart());
  }
  const double once = std::max(1e-9, *std::ranges::min_element(seconds));
  const auto wanted = std::clamp<std::int64_t>(std::llround(effort.seconds / once), kLeast, kMost);
  const std::int64_t calls = agreed(ranks, wanted);
  seconds.clear();
  watch.restart();
  for (std::int64_t i = 0; i < calls; ++i) {
    work();
    backend.synchronize(effort.device);
    seconds.push_back(watch.restart());
  }
  return seconds;
}

// Steps of a case, with the parts that a run has.
class Stepper {
 public:
  Stepper(StepCase& made, core::Communicator& ranks)
      : made_(made),
        optimizer_(optim::make_optimizer(made.optimizer, made.model->parameters())),
        scaler_({}, made.model->parameters().front().tensor.device()),
        step_({.model = *made.model, .optimizer = *optimizer_, .scaler = scaler_, .ranks = ranks}, {}) {}

  void take() {
    step_.compute(made_.batch, number_++);
    step_.commit(made_.lr);
  }

 private:
  StepCase& made_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  precision::GradScaler scaler_;
  train::Step step_;
  std::int64_t number_ = 0;
};

}  // namespace

std::vector<TimedSum> time_sums(core::Communicator& ranks, const Effort& effort) {
  std::vector<TimedSum> sums;
  for (const std::int64_t bytes : kSumBytes) {
    effort.say(fmt::format("{} ranks: sums of {} bytes", ranks.size(), bytes));
    at::Tensor values =
        at::zeros({bytes / static_cast<std::int64_t>(sizeof(float))}, at::device(effort.device).dtype(at::kFloat));
    const std::vector<double> seconds = timed(ranks, effort, [&] {
      if (const auto sum = ranks.start_sum(values)) {
        sum->wait();
      }
    });
    if (seconds.empty()) {
      break;
    }
    sums.push_back({static_cast<double>(bytes), median_of(seconds)});
  }
  return sums;
}

double time_exchange(core::Communicator& ranks, const Effort& effort) {
  constexpr std::int64_t kNumbers = 8;  // of a step with one term: train/rank_exchange.cpp
  effort.say(fmt::format("{} ranks: exchanges of a few numbers", ranks.size()));
  const at::Tensor numbers = at::zeros({kNumbers}, at::kDouble);
  const std::vector<double> seconds = timed(ranks, effort, [&] { (void)ranks.exchange(numbers); });
  return seconds.empty() ? 0 : median_of(seconds);
}

double time_steps(core::Communicator& ranks, StepCase& made, const Effort& effort) {
  Stepper stepper(made, ranks);
  const std::vector<double> seconds = timed(ranks, effort, [&] { stepper.take(); });
  return seconds.empty() ? 0 : median_of(seconds);
}

Course record_steps(StepCase& made, const Effort& effort) {
  RecordingRank rank;
  Stepper stepper(made, rank);
  std::vector<Course> courses;
  core::SingleRank alone;
  const std::vector<double> seconds = timed(alone, effort, [&] {
    rank.begin();
    stepper.take();
    courses.push_back(rank.end());
  });
  if (seconds.empty()) {
    return {};
  }
  courses.erase(courses.begin(), courses.begin() + kWarm);
  const auto middle = courses.begin() + static_cast<std::ptrdiff_t>(courses.size() / 2);
  std::ranges::nth_element(courses, middle, {}, &Course::seconds);
  return *middle;
}

}  // namespace stoker::study
