// SPDX-License-Identifier: Apache-2.0
// Whole training steps compared with PyTorch in Python (make_steps.py): each optimizer with each schedule,
// accumulation, and Adam from a warm second moment; weights, running statistics, averages, loss and gradient norm.
#include <ATen/ops/full.h>

#include "golden/training.h"
#include "stoker/optim/schedule.h"

namespace stoker::golden {
namespace {

constexpr int kSteps = 10;
const std::vector<std::string> kOptimizers{"adamw", "adam", "sgd", "momentum", "nesterov"};

optim::ScheduleOptions schedule_options(const std::string& name, double lr) {
  return {.kind = optim::schedule_kind(name),
          .lr = lr,
          .warmup_steps = name == "one_cycle" ? 0 : 2,
          .total_steps = kSteps,
          .min_factor = 0.1,
          .step_size = 3,
          .gamma = 0.3};
}

void check_run(const std::string& optimizer, const std::string& schedule, at::ScalarType dtype,
               std::int64_t microbatch) {
  const std::string name = optimizer + "." + schedule + (microbatch > 0 ? ".micro" : "");
  SCOPED_TRACE(name + ", " + c10::toString(dtype));
  const GoldenFile& file = steps_file();
  Training training(optimizer, dtype, microbatch);
  const optim::ScheduleOptions rates = schedule_options(schedule, peak_lr(optimizer));
  for (int step = 0; step < kSteps; ++step) {
    training.compute(small_batch(step, dtype), step);
    training.step.commit(optim::lr_at(rates, step));
    constexpr double kFloat32Digits = 1e-5;  // a step reports its values in float32
    for (const char* scalar : {"loss", "grad_norm"}) {
      const double golden = file[name + "." + scalar][step].item<double>();
      EXPECT_NEAR(training.scalar(scalar), golden, kFloat32Digits * golden) << scalar << " of step " << step;
    }
    if (step == 0 || step == kSteps - 1) {
      training.expect(file[name + "." + std::to_string(step + 1)], tolerance(dtype));
    }
  }
}

// Adam's first steps divide by nearly zero, so in float32 it is compared only from a warm second moment, below.
bool survives_float32(const std::string& optimizer) { return !optimizer.starts_with("adam"); }

TEST(GoldenSteps, EachOptimizerWithEachSchedule) {
  for (const std::string& optimizer : kOptimizers) {
    for (const std::string& schedule : optim::known_schedules()) {
      check_run(optimizer, schedule, at::kDouble, 0);
      if (survives_float32(optimizer)) {
        check_run(optimizer, schedule, at::kFloat, 0);
      }
    }
  }
}

TEST(GoldenSteps, AccumulationOverUnevenMicrobatches) {
  for (const std::string& optimizer : kOptimizers) {
    check_run(optimizer, "cosine", at::kDouble, 4);
    if (survives_float32(optimizer)) {
      check_run(optimizer, "cosine", at::kFloat, 4);
    }
  }
}

// Loads a row of make_steps.py's state() into a training before its first step.
void restore(Training& training, const at::Tensor& row, const std::vector<std::string>& moments) {
  const at::NoGradGuard no_grad;
  core::State state;
  std::int64_t offset = 0;
  std::vector<at::Tensor> averaged_statistics;
  for (const auto& [name, tensor] : training.tensors(moments)) {
    const at::Tensor value = row.narrow(0, offset, tensor.numel()).reshape(tensor.sizes()).to(tensor.scalar_type());
    if (name.starts_with("ema.") && name.find("running") != std::string::npos) {
      averaged_statistics.push_back(value);
    } else if (name.starts_with("ema.") || name.starts_with("optimizer.")) {
      state.tensors[name] = value;
    } else {
      at::Tensor(tensor).copy_(value);
    }
    offset += tensor.numel();
  }
  state.tensors["ema.norm_buffers.0"] = at::cat(averaged_statistics);
  state.tensors["ema.updates"] = at::full({}, 20, at::kDouble);
  state.tensors["optimizer.step"] = at::full({}, 20, at::kFloat);
  training.optimizer->load_state(state);
  training.ema.load_state(state);
}

TEST(GoldenSteps, AdamFromAWarmSecondMoment) {
  const std::vector<std::string> moments{"exp_avg", "exp_avg_sq"};
  for (const std::string optimizer : {"adamw", "adam"}) {
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(optimizer + ", " + c10::toString(dtype));
      Training training(optimizer, dtype);
      restore(training, steps_file()[optimizer + ".warm.0"], moments);
      for (int step = 0; step < kSteps; ++step) {
        training.compute(small_batch(step, dtype), step);
        training.step.commit(peak_lr(optimizer));
        if (step == 0 || step == kSteps - 1) {
          training.expect(steps_file()[optimizer + ".warm." + std::to_string(step + 1)], tolerance(dtype), moments);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::golden
