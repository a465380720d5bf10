// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over ranks, made while backward still computes other gradients. Gradients are gathered in flat
// buckets, which are the same on all ranks and never change: so sums have the same bits on repetition. Used by
// train::RankExchange; backward calls it on its thread, everything else on one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/observed.h"
#include "stoker/core/trainable.h"

namespace stoker::parallel {

// Backward reaches the last layers first: a small first bucket is on its way early. Sizes: the first as in PyTorch's
// DistributedDataParallel (reducer.hpp), the others smaller than its 25 MiB, since the last one is never hidden.
struct BucketSizes {
  std::int64_t first = std::int64_t{1} << 20;  // bytes
  std::int64_t others = std::int64_t{4} << 20;
};

class GradientBuckets {
 public:
  // Of the parameters that require a gradient, the last one first. ConfigError if one has a hook after its gradient.
  // Parameters and ranks outlive it. header: bytes of the message that the ranks exchange at the end of each step.
  // bf16: buckets are rounded to it and summed in it, in half the bytes; a bucket that rides in the message is not.
  GradientBuckets(core::Communicator& ranks, const std::vector<core::Parameter>& parameters, BucketSizes sizes = {},
                  std::int64_t header = 0, bool bf16 = false);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Before the backward pass after which this rank's gradients are whole: each bucket is summed as soon as it is full.
  void begin();
  // After the passes, also if they failed, or if this rank had none: starts the sums that are left, with zeros for
  // gradients that are missing. empty: with zeros for all that has not been started.
  void start_rest(bool empty = false);
  // Then: the message of this rank, uint8 1-dim; its first `header` bytes are the caller's. If the last bucket is
  // small, it rides in it: one collective less, which a small step would wait for.
  [[nodiscard]] const at::Tensor& message() const { return message_; }
  // Then: returns when gradients are sums over ranks. messages: of all ranks, a row each.
  void wait(const at::Tensor& messages);

  // Of each bucket, since the start, if there is a header; that of the newest step is not known yet. One that rides in
  // the message has no time of its own.
  [[nodiscard]] const std::vector<core::BucketTime>& times() const { return times_; }

  // Of shapes and dtypes: equal on ranks that can sum.
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }

 private:
  class Hook;
  struct Slot {
    at::Tensor parameter;
    std::size_t bucket = 0;
    at::Tensor place;  // in the bucket, with the layout of the parameter
    bool full = false;
  };
  struct Bucket {
    at::Tensor flat;  // 1-dim
    at::Tensor sent;  // what is summed: flat, or its values in bf16
    std::vector<std::size_t> slots;
    std::size_t missing = 0;  // slots that are not full
    bool started = false;
    double seconds = -1;  // of its last sum, on this rank
    std::unique_ptr<core::Communicator::Pending> sum;
  };

  void put_into_buckets(const BucketSizes& sizes);
  void make_places();
  void hook_all();
  void unhook();
  void arrived(std::size_t slot);
  void fill(Slot& slot, bool empty);
  void start_full_ones();
  void start(Bucket& bucket);
  void tell_times();
  void hear_times(const at::Tensor& messages);
  void drop_sums() noexcept;
  [[nodiscard]] bool rides(const Bucket& bucket) const { return rides_ && &bucket == &buckets_.back(); }

  core::Communicator& ranks_;
  const std::int64_t header_;
  std::int64_t told_ = 0;  // bytes of the message before the bucket that rides: header, then seconds per bucket
  const bool bf16_;
  at::Tensor message_;  // uint8
  bool rides_ = false;  // the last bucket lies in the message
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::vector<core::BucketTime> times_;
  std::size_t hooked_ = 0;
  std::size_t next_ = 0;  // the bucket to start next: all ranks start them in this order
  bool active_ = false;
  std::uint64_t hash_ = 0;
};

}  // namespace stoker::parallel
