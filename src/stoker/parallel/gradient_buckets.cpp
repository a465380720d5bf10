// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.gradient_buckets";
constexpr std::int64_t kAligned = 64;  // bytes
// Bytes of all ranks' last buckets up to which it rides in the message. A gathering moves as much as a sum between two
// ranks and more between many, but with fewer messages in a row. The size is a choice.
constexpr std::int64_t kGathered = std::int64_t{256} << 10;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

// Half weights have float32 gradients.
at::ScalarType gradient_type(const at::Tensor& parameter) {
  return at::isReducedFloatingType(parameter.scalar_type()) ? at::kFloat : parameter.scalar_type();
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {  // FNV-1a, 64 bits
  constexpr std::uint64_t kPrime = 0x100000001B3;
  return (hash ^ value) * kPrime;
}

}  // namespace

class GradientBuckets::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, std::size_t slot) : buckets_(buckets), slot_(slot) {}
  void operator()(const at::Tensor&) override {
    if (buckets_.active_) {
      buckets_.arrived(slot_);
    }
  }

 private:
  GradientBuckets& buckets_;
  std::size_t slot_;
};

GradientBuckets::GradientBuckets(core::Communicator& ranks, const std::vector<core::Parameter>& parameters,
                                 BucketSizes sizes, std::int64_t header, bool bf16)
    : ranks_(ranks), header_(aligned(header)), bf16_(bf16) {
  for (auto each = parameters.rbegin(); each != parameters.rend(); ++each) {
    if (each->tensor.requires_grad()) {
      slots_.emplace_back().parameter = each->tensor;
    }
  }
  put_into_buckets(sizes);
  make_places();
  hook_all();
}

GradientBuckets::~GradientBuckets() {
  drop_sums();
  unhook();
}

void GradientBuckets::put_into_buckets(const BucketSizes& sizes) {
  constexpr std::uint64_t kBasis = 0xCBF29CE484222325;
  hash_ = mixed(kBasis, bf16_ ? 1 : 0);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const at::ScalarType type = gradient_type(slot.parameter);
    const std::int64_t own = slot.parameter.numel() * static_cast<std::int64_t>(c10::elementSize(type));
    const std::int64_t most = buckets_.size() <= 1 ? sizes.first : sizes.others;
    const bool other = i > 0 && (type != gradient_type(slots_[i - 1].parameter) ||
                                 slot.parameter.device() != slots_[i - 1].parameter.device());
    if (buckets_.empty() || other || bytes + own > most) {
      buckets_.emplace_back();
      bytes = 0;
    }
    bytes += own;
    slot.bucket = buckets_.size() - 1;
    buckets_.back().slots.push_back(i);
    hash_ = mixed(mixed(hash_, slot.bucket), static_cast<std::uint64_t>(type));
    for (const std::int64_t extent : slot.parameter.sizes()) {
      hash_ = mixed(hash_, static_cast<std::uint64_t>(extent));
    }
  }
}

// A place has its parameter's strides, so that an optimizer reads both in the same order; the values of ranks agree
// since all ranks have the same plan.
void GradientBuckets::make_places() {
  const auto times = aligned(static_cast<std::int64_t>(buckets_.size() * sizeof(double)));
  told_ = header_ > 0 ? header_ + times : 0;  // no message for the times alone
  message_ = at::zeros({told_}, at::kByte);
  for (Bucket& bucket : buckets_) {
    std::int64_t values = 0;
    for (const std::size_t slot : bucket.slots) {
      values += slots_[slot].parameter.numel();
    }
    const at::Tensor& like = slots_[bucket.slots.front()].parameter;
    const at::ScalarType type = gradient_type(like);
    const std::int64_t bytes = values * static_cast<std::int64_t>(c10::elementSize(type));
    if (&bucket == &buckets_.back()) {
      rides_ = like.is_cpu() && bytes * ranks_.size() <= kGathered;
      message_ = at::zeros({told_ + (rides_ ? aligned(bytes) : 0)}, at::kByte);
    }
    bucket.flat = rides(bucket) ? message_.narrow(0, told_, bytes).view(type)
                                : at::zeros({values}, at::device(like.device()).dtype(type));
    bucket.sent = bf16_ && !rides(bucket) ? at::zeros_like(bucket.flat, at::kBFloat16) : bucket.flat;
    times_.push_back({.bytes = bytes});
    std::int64_t offset = 0;
    for (const std::size_t index : bucket.slots) {
      Slot& slot = slots_[index];
      const at::Tensor& parameter = slot.parameter;
      slot.place =
          parameter.is_non_overlapping_and_dense()
              ? bucket.flat.as_strided(parameter.sizes(), parameter.strides(), bucket.flat.storage_offset() + offset)
              : bucket.flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
      offset += parameter.numel();
    }
  }
}

void GradientBuckets::hook_all() {
  for (; hooked_ < slots_.size(); ++hooked_) {
    const at::Tensor& parameter = slots_[hooked_].parameter;
    if (torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr) {
      unhook();
      fail<ConfigError>(kWhere,
                        "a parameter already has a hook after its gradient; remove it to train on several ranks");
    }
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Hook>(*this, hooked_));
  }
}

void GradientBuckets::unhook() {
  for (; hooked_ > 0; --hooked_) {
    torch::autograd::impl::post_acc_grad_hooks(slots_[hooked_ - 1].parameter).reset();
  }
}

void GradientBuckets::begin() {
  drop_sums();
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.slots.size();
    bucket.started = false;
  }
  for (Slot& slot : slots_) {
    slot.full = false;
  }
  next_ = 0;
  active_ = true;
}

void GradientBuckets::arrived(std::size_t index) {
  Slot& slot = slots_[index];
  if (buckets_[slot.bucket].started) {
    fail<Error>(kWhere, "a gradient changed after it was summed over ranks; a backward pass inside backward does that");
  }
  fill(slot, false);
  start_full_ones();
}

void GradientBuckets::fill(Slot& slot, bool empty) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (empty || !gradient.defined()) {
    slot.place.zero_();
  } else if (!gradient.is_same(slot.place)) {
    slot.place.copy_(gradient);
  }
  gradient = slot.place;
  buckets_[slot.bucket].missing -= std::exchange(slot.full, true) ? 0 : 1;
}

void GradientBuckets::start_full_ones() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    start(buckets_[next_]);
  }
}

void GradientBuckets::start(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  bucket.started = true;
  if (rides(bucket)) {
    return;
  }
  if (!bucket.sent.is_same(bucket.flat)) {
    bucket.sent.copy_(bucket.flat);
  }
  bucket.sum = ranks_.start_sum(bucket.sent);
}

void GradientBuckets::start_rest(bool empty) {
  if (!std::exchange(active_, false)) {
    begin();
    active_ = false;
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.started) {
      for (const std::size_t slot : bucket.slots) {
        if (empty || !slots_[slot].full) {
          fill(slots_[slot], empty);
        }
      }
    }
  }
  start_full_ones();
  tell_times();
}

// Of the last step: what a bucket took is known when the message of its own step is on its way.
void GradientBuckets::tell_times() {
  if (told_ == 0) {
    return;
  }
  auto* seconds = reinterpret_cast<double*>(message_.mutable_data_ptr<std::uint8_t>() + header_);
  for (const Bucket& each : buckets_) {
    *seconds++ = each.seconds;
  }
}

// Sums end on all ranks together: the rank on which one took least has begun it last.
void GradientBuckets::hear_times(const at::Tensor& messages) {
  for (std::size_t i = 0; told_ > 0 && i < times_.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto* const row = messages.const_data_ptr<std::uint8_t>() + rank * messages.size(1) + header_;
      least = std::min(least, reinterpret_cast<const double*>(row)[i]);
    }
    if (least >= 0) {
      times_[i].seconds += least;
      ++times_[i].steps;
    }
  }
}

void GradientBuckets::wait(const at::Tensor& messages) {
  hear_times(messages);
  const at::NoGradGuard no_grad;
  for (Bucket& bucket : buckets_) {
    bucket.seconds = -1;
    if (const auto sum = std::exchange(bucket.sum, nullptr)) {
      sum->wait();
      bucket.seconds = sum->seconds();
    }
    if (!bucket.sent.is_same(bucket.flat)) {
      bucket.flat.copy_(bucket.sent);
    }
  }
  if (!rides_) {
    return;
  }
  at::Tensor& flat = buckets_.back().flat;
  const auto part_of = [&](std::int64_t rank) {
    return messages[rank].narrow(0, told_, static_cast<std::int64_t>(flat.nbytes())).view(flat.scalar_type());
  };
  flat.copy_(part_of(0));
  for (std::int64_t rank = 1; rank < ranks_.size(); ++rank) {  // the same order on all ranks
    flat.add_(part_of(rank));
  }
}

void GradientBuckets::drop_sums() noexcept {
  for (Bucket& bucket : buckets_) {
    bucket.sum.reset();
  }
}

}  // namespace stoker::parallel
