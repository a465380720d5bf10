// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/scalar_ring.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <atomic>
#include <cstring>

#include "stoker/base/error.h"
#include "stoker/core/guarded_memory.h"
#include "stoker/core/text.h"
#include "stoker/device/backend.h"

namespace stoker::device {

class ScalarRing::Slot final : public core::PendingScalars {
 public:
  Slot(at::Device device, std::size_t scalars) : count_(scalars) {
    const bool pinned = !device.is_cpu();
    host_ = core::guarded(
        at::empty({static_cast<std::int64_t>(scalars)}, at::TensorOptions().dtype(at::kFloat).pinned_memory(pinned)));
    if (pinned) {
      copied_ = backend_for(device).make_event(device, /*timing=*/false);
    }
  }

  void take(const at::Tensor& values) {
    if (!copied_) {
      std::memcpy(host_.mutable_data_ptr<float>(), values.const_data_ptr<float>(), count_ * sizeof(float));
      return;
    }
    const at::NoGradGuard no_grad;
    host_.copy_(values, /*non_blocking=*/true);
    copied_->record();
  }

  core::Scalars read() const override {
    if (copied_) {
      copied_->wait();
    }
    core::Scalars scalars;
    scalars.count = count_;
    std::memcpy(scalars.values.data(), host_.const_data_ptr<float>(), count_ * sizeof(float));
    return scalars;
  }

 private:
  std::size_t count_;
  at::Tensor host_;
  std::unique_ptr<Event> copied_;  // none on a CPU, where take() copies before it returns
};

ScalarRing::ScalarRing(at::Device device, std::size_t scalars, std::size_t slots) : device_(device), scalars_(scalars) {
  if (scalars == 0 || scalars > core::kMaxScalars || slots == 0) {
    fail<ConfigError>("device.scalar_ring", "needs 1 to {} scalars and at least one slot, got {} and {}",
                      core::kMaxScalars, scalars, slots);
  }
  slots_.reserve(2 * slots);
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(make_slot());
  }
}

ScalarRing::~ScalarRing() = default;

std::shared_ptr<ScalarRing::Slot> ScalarRing::make_slot() const { return std::make_shared<Slot>(device_, scalars_); }

std::shared_ptr<ScalarRing::Slot>& ScalarRing::next_free() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    if (slot.use_count() == 1) {
      // use_count() is a relaxed load; the last reader must release its handle before our write.
      std::atomic_thread_fence(std::memory_order_acquire);
      return slot;
    }
  }
  next_ = 0;
  return slots_.emplace_back(make_slot());
}

std::shared_ptr<const core::PendingScalars> ScalarRing::write(const at::Tensor& values) {
  const bool fits = values.defined() && values.dim() == 1 && values.scalar_type() == at::kFloat &&
                    values.numel() == static_cast<std::int64_t>(scalars_) && values.is_contiguous() &&
                    !values.requires_grad() && values.device().type() == device_.type();
  if (!fits) {
    fail<ConfigError>(
        "device.scalar_ring", "scalars of a step must be a detached, contiguous float32 [{}] on {}, got {}{}", scalars_,
        device_.str(), core::describe(values), values.defined() && values.requires_grad() ? " that requires grad" : "");
  }
  auto& slot = next_free();
  slot->take(values);
  return slot;
}

}  // namespace stoker::device
