// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/recovery.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/device/backend.h"

namespace stoker::train {
namespace {

constexpr int kSourceFailures = 8;         // in a row: the source cannot work with the memory that is left
constexpr std::int64_t kRetryWindow = 16;  // steps; at least one retry per step is thrashing
constexpr double kGrowthMargin = 1.1;      // of the memory that twice as many samples are expected to need

}  // namespace

Recovery::Recovery(RecoveryOptions options) : options_(std::move(options)), microbatch_(options_.microbatch) {}

void Recovery::begin_step(std::int64_t step) {
  step_ = step;
  microbatch_.begin_step(step);
  if (microbatch_.may_grow()) {
    if (twice_fits()) {
      microbatch_.grow();
    } else {
      microbatch_.wait_again();
    }
  } else if (microbatch_.may_grow_soon()) {  // twice_fits() needs the peak of one step
    device::backend_for(options_.device).reset_peak(options_.device);
  }
}

void Recovery::step_done() {
  microbatch_.step_done();
  if (step_ % kRetryWindow == 0) {
    watch_retries();
  }
}

void Recovery::watch_retries() {
  const std::int64_t now = device::backend_for(options_.device).retries(options_.device);
  const std::int64_t newer = retries_ < 0 ? 0 : now - retries_;
  retries_ = now;
  if (newer >= kRetryWindow && microbatch_.shrink(largest_batch_, /*from_next_step=*/true)) {
    tell(
        fmt::format("{} allocations in {} steps succeeded only after the cache was released, which waits for the "
                    "device; from step {} on, passes have at most {}",
                    newer, kRetryWindow, step_ + 1, counted(microbatch_.largest_pass(largest_batch_), "sample")));
  }
}

// Activations are proportional to samples; what is held between steps is not.
bool Recovery::twice_fits() const {
  const device::MemoryFigures now = device::backend_for(options_.device).memory(options_.device);
  if (now.allocated < 0 || now.peak < 0 || now.free < 0) {
    return true;  // unknown: a try costs a part of a step
  }
  const auto need = static_cast<double>(2 * (now.peak - now.allocated));
  return need * kGrowthMargin <= static_cast<double>(now.free);
}

void Recovery::between_steps(const std::string& what, const std::function<void()>& work) {
  try {
    work();
    return;
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    release();
    tell(fmt::format("{} ran out of memory; it is tried again ({})", what, memory::out_of_memory_reason(error)));
  }
  work();
}

std::optional<core::Batch> Recovery::next(core::BatchSource& source) {
  RECORD_USER_SCOPE("enumerate(DataLoader)#Stoker.__next__");  // as readers of PyTorch's traces know it
  const core::PhaseScope phase(core::Phase::kInput);
  for (int failures = 1;; ++failures) {
    std::optional<core::Batch> batch;
    try {
      batch = source.next();
    } catch (const std::exception& error) {
      memory::rethrow_unless_out_of_memory(error);
      release();
      if (failures == kSourceFailures) {
        give_up(error);
      }
      const bool shrunk = failures > 1 && microbatch_.shrink(largest_batch_);
      tell(fmt::format("making a batch of {} ran out of memory; it is made again{} ({})", options_.work,
                       shrunk ? fmt::format(", and forward passes have at most {}",
                                            counted(microbatch_.largest_pass(largest_batch_), "sample"))
                              : "",
                       memory::out_of_memory_reason(error)));
      continue;
    }
    if (batch) {  // it is taken: nothing below may ask the source again
      largest_batch_ = std::max(largest_batch_, batch->size());
      global_batch_ = batch->global_size();
      say_coupled(batch->size());
    }
    return batch;
  }
}

void Recovery::ran_out(const std::exception& error, std::int64_t samples, bool after_passes) {
  release();
  const std::int64_t before = microbatch_.largest_pass(samples);
  if (!microbatch_.shrink(samples, after_passes)) {
    give_up(error);
  }
  if (after_passes) {
    tell(fmt::format("{} ran out of memory after its forward passes; the next one has {} per pass ({})", options_.work,
                     counted(microbatch_.largest_pass(samples), "sample"), memory::out_of_memory_reason(error)));
    return;
  }
  tell(fmt::format("{} ran out of memory with {} per forward pass; the same batch runs again with {} ({})",
                   options_.work, counted(before, "sample"), microbatch_.largest_pass(samples),
                   memory::out_of_memory_reason(error)));
  say_coupled(samples);
}

void Recovery::release() const { device::backend_for(options_.device).release_cache(options_.device); }

void Recovery::tell(const std::string& text) {
  if (options_.events != nullptr) {
    options_.events->emit(core::FaultSurvived{step_, "out_of_memory", text});
  }
}

void Recovery::say_coupled(std::int64_t samples) {
  const std::int64_t pass = microbatch_.largest_pass(samples), whole = std::max(samples, global_batch_);
  if (options_.coupled.empty() || options_.events == nullptr || pass >= whole) {
    return;
  }
  options_.events->emit(core::Finding{
      fmt::format("the batch of {} is split into passes of {}, and batch norm takes its statistics from one pass: the "
                  "model learns differently than from whole batches; {}",
                  whole, counted(pass, "sample"), std::exchange(options_.coupled, ""))});
}

void Recovery::give_up(const std::exception& error) {
  fail<OutOfMemory>("memory", "{} does not fit even in the smallest forward passes ({}){}{}",
                    step_ > 0 ? fmt::format("step {}", step_) : options_.work, memory::out_of_memory_reason(error),
                    options_.advice ? "; " : "", options_.advice ? options_.advice() : "");
}

}  // namespace stoker::train
