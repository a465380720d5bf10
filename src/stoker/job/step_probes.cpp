// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/step_probes.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <exception>

#include "stoker/base/clock.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/job/setup.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/step.h"

namespace stoker::job {
namespace {

constexpr double kShort = 1.0;   // seconds; a shorter step is timed at least twice, since others may take the cores
constexpr double kEnough = 0.2;  // seconds of steps that are looked at in one probe
constexpr int kMostLooks = 10;
constexpr int kForwards = 3;  // that time the segments, after a first one

// Values of all samples end to end, as often as there are whole batches, then those of the rest.
core::Field ragged_repeated(const core::Field& field, std::int64_t size, std::int64_t samples) {
  const std::int64_t rest = samples % size;
  std::vector<at::Tensor> values(static_cast<std::size_t>(samples / size), field.values);
  values.push_back(field.values.slice(0, 0, field.offsets[rest].item<std::int64_t>()));
  std::vector<at::Tensor> offsets;
  const std::int64_t all = field.offsets[size].item<std::int64_t>();
  for (std::int64_t i = 0; i < samples / size; ++i) {
    offsets.push_back(field.offsets.slice(0, 0, size).add(i * all));
  }
  offsets.push_back(field.offsets.slice(0, 0, rest + 1).add(samples / size * all));
  return {field.name, at::cat(values), field.layout, at::cat(offsets)};
}

}  // namespace

core::Batch rows_repeated(const core::Batch& batch, std::int64_t samples) {
  const std::int64_t size = batch.size();
  if (samples <= size) {
    return batch.slice(0, samples);
  }
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) {
    indices.push_back(batch.indices()[static_cast<std::size_t>(i % size)]);
  }
  core::Batch result(batch.position(), std::move(indices));
  for (const core::Field& field : batch.fields()) {
    if (field.layout == core::Layout::kPerSample) {
      const at::Tensor rows = at::arange(samples, at::device(field.values.device()).dtype(at::kLong)).remainder(size);
      result.set(field.name, at::index_select(field.values, 0, rows));
    } else {
      result.set(field.layout == core::Layout::kRagged ? ragged_repeated(field, size, samples) : field);
    }
  }
  return result;
}

StepProbes::StepProbes(const Setup& setup, bool whole_batches)
    : setup_(setup),
      whole_batches_(whole_batches),
      recompute_(memory::parse_recompute(setup.plan.recompute)),
      // Without a commit the optimizer is not used: one without state.
      optimizer_(optim::make_optimizer({.name = "sgd", .momentum = 0}, setup.model->parameters())),
      batch_(*setup.training_source({})->next()) {
  const device::Backend& backend = device::backend_for(setup_.device);
  const HeldBytes run = held_by_run(setup_);
  later_ = run.optimizer / setup_.plan.pipeline + run.averages;  // a stage has about its share
  const device::MemoryFigures now = backend.memory(setup_.device);
  held_ = now.allocated < 0 ? -1 : now.allocated + later_;
  limit_ = now.free < 0 || now.allocated < 0 ? -1 : std::max<std::int64_t>(0, now.free - later_);
  if (setup_.plan.memory_limit > 0) {  // what does not exist yet is kept free
    backend.limit_memory(setup_.device, std::max<std::int64_t>(1, setup_.plan.memory_limit - later_));
  }
}

StepProbes::~StepProbes() {
  try {
    device::backend_for(setup_.device).limit_memory(setup_.device, setup_.plan.memory_limit);
  } catch (const std::exception&) {  // of a lost device, whose error is on its way
  }
}

double StepProbes::compute(const core::Batch& batch, std::int64_t samples) {
  core::SingleRank alone;
  precision::GradScaler scaler({.scaling = setup_.plan.precision == "fp16"}, setup_.device);
  train::Step step({.model = *setup_.model, .optimizer = *optimizer_, .scaler = scaler, .ranks = alone},
                   {.autocast = setup_.autocast_dtype(), .clip = setup_.plan.clip, .recompute = recompute_});
  const device::Backend& backend = device::backend_for(setup_.device);
  backend.synchronize(setup_.device);
  const Stopwatch watch;
  step.compute(batch, 0, samples);
  backend.synchronize(setup_.device);
  const double seconds = watch.seconds();
  step.drop();
  return seconds;
}

memory::Probe StepProbes::probe(std::int64_t samples) {
  const device::Backend& backend = device::backend_for(setup_.device);
  const std::int64_t passes = whole_batches_ || samples >= batch_.size() ? 1 : 2;
  memory::Probe result{.samples = samples};
  const std::int64_t before = backend.allocated(setup_.device);
  backend.reset_peak(setup_.device);
  try {
    const core::Batch batch = rows_repeated(batch_, passes * samples);
    double seconds = compute(batch, samples);  // kernels are built for new shapes
    const device::MemoryFigures figures = backend.memory(setup_.device);
    result.bytes = before < 0 || figures.peak < 0 ? -1 : figures.peak - before;
    result.fits = limit_ < 0 || result.bytes <= limit_;
    if (result.fits) {
      const bool brief = seconds < kShort;
      const Stopwatch watch;
      seconds = compute(batch, samples);
      for (int more = 1; brief && (more == 1 || watch.seconds() < kEnough) && more < kMostLooks; ++more) {
        seconds = std::min(seconds, compute(batch, samples));
      }
      result.seconds = seconds / static_cast<double>(passes);
    }
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    result = {.samples = samples};
  }
  if (!result.fits) {
    backend.release_cache(setup_.device);
  }
  return result;
}

std::vector<memory::SegmentCost> StepProbes::segment_costs(std::int64_t samples) {
  const core::Batch batch = rows_repeated(batch_, samples);
  const auto measure = [&] {
    const at::ScalarType dtype = setup_.autocast_dtype();
    const bool mixed = dtype != at::kFloat;
    const precision::AutocastGuard autocast(setup_.device.type(), mixed ? dtype : at::kBFloat16, mixed);
    return memory::measure_segments(*setup_.model, setup_.model->inputs(batch));
  };
  (void)measure();  // kernels are built for new shapes
  std::vector<memory::SegmentCost> costs = measure();
  for (int more = 1; more < kForwards; ++more) {
    const std::vector<memory::SegmentCost> again = measure();
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i].seconds = std::min(costs[i].seconds, again[i].seconds);
    }
  }
  return costs;
}

}  // namespace stoker::job
