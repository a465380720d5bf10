// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/evaluation_memory.h"

#include <cmath>

#include "stoker/base/bytes_text.h"
#include "stoker/device/backend.h"

namespace stoker::job {
namespace {

// Sums and counts that an evaluation keeps are far smaller per batch.
constexpr memory::LeakOptions kBatches{.warm_up = 2, .settle = 0, .window = 16, .look_every = 4, .least = 64 << 10};

}  // namespace

void EvaluationMemory::begin() {
  growth_.emplace(kBatches);
  batches_ = 0;
}

void EvaluationMemory::batch_done() {
  if (!growth_ || told_growth_ || events_ == nullptr) {
    return;
  }
  const auto found = growth_->add(++batches_, device::backend_for(device_).allocated(device_));
  if (found) {
    told_growth_ = true;
    events_->emit(core::Finding{fmt::format(
        "memory held by tensors grows by {} per batch of an evaluation (95 % interval {} to {}): outputs or "
        "predictions are kept or joined on the device; add up sums and counts, or copy predictions to the "
        "host batch by batch",
        bytes_text(std::llround(found->bytes)), bytes_text(std::llround(found->low)),
        bytes_text(std::llround(found->high)))});
  }
}

void EvaluationMemory::with_gradients() {
  if (!told_gradients_ && events_ != nullptr) {
    told_gradients_ = true;
    events_->emit(core::Finding{
        "the evaluation computes with gradients on: the model's outputs or metrics require a gradient, so "
        "each batch keeps its activations; something in forward() or evaluate() turns gradients on "
        "(at::AutoGradMode): remove it, or call detach() on what it returns"});
  }
}

}  // namespace stoker::job
