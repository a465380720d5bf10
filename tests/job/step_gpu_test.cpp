// SPDX-License-Identifier: Apache-2.0
// A step on a GPU compared with the same step on a CPU: convolutions, batch norm, clipping, averages, the scaler, and a
// step that overflows. Without a GPU the test is reported as skipped.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "stoker/device/placement.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/train/step.h"
#include "support/gpu.h"

namespace stoker::train {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

struct Trained {
  std::vector<at::Tensor> weights, statistics, averages;  // on the CPU
  std::vector<std::vector<float>> reported;               // of each step
};

// Six steps of Nesterov SGD from equal weights, the third with an infinite gradient.
Trained train(c10::Device device, at::ScalarType autocast) {
  models::ModelOptions options;
  options.classes = 3;
  options.image_size = 8;
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = {.image_size = 8, .resize = 8, .mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}};
  tasks::ImageClassifier model(models::make_network("cnn", options), classifier);
  model.to(device);
  core::SingleRank ranks;
  const auto optimizer = optim::make_optimizer({.name = "sgd", .momentum = 0.9, .nesterov = true}, model.parameters());
  precision::GradScaler scaler({.scaling = autocast == at::kHalf, .initial_scale = 1024}, device);
  optim::Ema ema(model.parameters(), model.norm_buffers(), 0.9);
  StepOptions step_options;
  step_options.clip = 1;
  step_options.autocast = autocast;
  Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, step_options);

  Trained result;
  for (int number = 0; number < 6; ++number) {
    core::Batch batch({0, number}, {0, 1, 2, 3, 4, 5, 6, 7});
    batch.set("image", at::arange(8 * 8 * 8 * 3).mul(97 + number).remainder(251).to(at::kByte).reshape({8, 8, 8, 3}));
    batch.set("target", at::arange(8).remainder(3));
    step.compute(device::move_batch(std::move(batch), device), number, 4);
    if (number == 2) {
      model.parameters().front().tensor.grad().fill_(std::numeric_limits<float>::infinity());
    }
    step.commit(0.05);
    const at::Tensor row = step.scalars().cpu();
    const float* values = row.const_data_ptr<float>();
    result.reported.emplace_back(values, values + row.numel());
  }
  const auto copy = [](const core::TensorList& from) {
    std::vector<at::Tensor> to;
    for (const at::Tensor& tensor : from) {
      to.push_back(tensor.detach().cpu().clone());
    }
    return to;
  };
  const auto weights = [&] {
    core::TensorList list;
    for (const core::Parameter& parameter : model.parameters()) {
      list.push_back(parameter.tensor);
    }
    return copy(list);
  };
  result.weights = weights();
  result.statistics = copy(model.norm_buffers());
  const optim::Ema::InPlace averages(ema);
  result.averages = weights();
  return result;
}

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double largest = b[i].abs().max().item<double>();
    EXPECT_LE((a[i] - b[i]).abs().max().item<double>(), tolerance * (1e-2 + largest)) << "tensor " << i;
  }
}

// The length of the difference of all weights, relative to the length of b.
double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]).square().sum().item<double>();
    length += b[i].square().sum().item<double>();
  }
  return std::sqrt(difference / length);
}

void expect_same_reports(const Trained& gpu, const Trained& cpu, double tolerance) {
  for (std::size_t step = 0; step < cpu.reported.size(); ++step) {
    const std::vector<float>&a = gpu.reported[step], &b = cpu.reported[step];
    ASSERT_EQ(a.size(), b.size());
    EXPECT_NEAR(a[0], b[0], tolerance * (1 + b[0])) << "loss of step " << step;
    EXPECT_EQ(a[2], step == 2 ? 1 : 0) << "skipped, step " << step;
    EXPECT_EQ(a.back(), b.back()) << "scale (or skipped) of step " << step;
  }
}

TEST(GpuStep, TrainsAsOnACpu) {
  STOKER_NEEDS_GPU();
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  const Trained exact = train(c10::kCPU, at::kFloat), gpu = train(kGpu, at::kFloat);
  expect_close(gpu.weights, exact.weights, 1e-3);
  expect_close(gpu.statistics, exact.statistics, 1e-3);
  expect_close(gpu.averages, exact.averages, 1e-3);
  expect_same_reports(gpu, exact, 1e-3);
}

// Rounding grows from step to step, and both devices round in other places: the GPU's weights may be as far from those
// of fp32 as the CPU's are, and half as far again.
TEST(GpuStep, LowPrecisionIsAsCloseAsOnACpu) {
  STOKER_NEEDS_GPU();
  const Trained exact = train(c10::kCPU, at::kFloat);
  for (const at::ScalarType autocast : {at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(c10::toString(autocast));
    const Trained cpu = train(c10::kCPU, autocast), gpu = train(kGpu, autocast);
    const auto expect_as_close = [&](std::vector<at::Tensor> Trained::*part) {
      const double of_cpu = distance(cpu.*part, exact.*part), of_gpu = distance(gpu.*part, exact.*part);
      std::printf("  from fp32: on a CPU %.2e, on a GPU %.2e\n", of_cpu, of_gpu);
      EXPECT_LE(of_gpu, 1.5 * of_cpu);
    };
    expect_as_close(&Trained::weights);
    expect_as_close(&Trained::statistics);
    expect_as_close(&Trained::averages);
    expect_same_reports(gpu, cpu, 5e-2);
  }
}

}  // namespace
}  // namespace stoker::train
