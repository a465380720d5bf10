// SPDX-License-Identifier: Apache-2.0
// A prefetcher on a host or device without memory: whichever allocation, copy or event fails, every batch arrives once
// and whole, and no slot returns to the loader before its copy is done.
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/device/prefetcher.h"
#include "support/late_device.h"
#include "support/no_batch_lost.h"
#include "support/no_threads.h"

namespace stoker::device {
namespace {

using testing::at_every_new;
using testing::LateStream;
using testing::MayAllocate;
using testing::Whose;

constexpr int kSteps = 2, kCalls = 4;  // per epoch; an epoch with its end, and a batch more
constexpr std::uint8_t kPoison = 255;

// Batches of two fields in slots that are poisoned when they return. Its thread is chosen for failures.
class Slots final : public core::BatchSource {
 public:
  std::optional<core::Batch> next() override {
    testing::choose_this_thread();
    if (position_.step == kSteps) {
      position_ = {position_.epoch + 1, 0};
      return std::nullopt;
    }
    std::array<std::uint8_t, 8>& slot = slots_[static_cast<std::size_t>(given_ % 32)];
    core::Batch batch(position_, std::vector<std::int64_t>(4));
    const auto value = static_cast<std::uint8_t>(10 * position_.epoch + position_.step);
    for (const auto& [name, from] : {std::pair{"image", 0}, {"target", 4}}) {
      const auto poison = [](void* to) { std::fill_n(static_cast<std::uint8_t*>(to), 4, kPoison); };
      std::fill_n(slot.data() + from, 4, value);
      at::TensorMaker maker = at::for_blob(slot.data() + from, {4});
      batch.set(name, maker.options(at::kByte).context(slot.data() + from, poison).make_tensor());
    }
    ++given_;
    ++position_.step;
    return batch;
  }

 private:
  core::Position position_;
  std::int64_t given_ = 0;
  std::array<std::array<std::uint8_t, 8>, 32> slots_{};
};

// Its k-th call of any kind fails, counted from 1, or every call as long as that is wanted.
class FailingStream final : public LateStream {
 public:
  explicit FailingStream(int k) : left_(k) {}
  at::Tensor copy(const at::Tensor& host) override {
    call();
    return LateStream::copy(host);
  }
  std::unique_ptr<Event> mark(bool timing) override {
    call();
    return LateStream::mark(timing);
  }
  void await(Event& copied) override {
    call();
    LateStream::await(copied);
  }
  void used_here(const at::Tensor& tensor) override {
    call();
    LateStream::used_here(tensor);
  }
  static inline std::atomic<bool> always = false;
  static inline std::atomic<int> failures = 0;

 private:
  void call() {
    if (--left_ == 0 || always) {
      ++failures;
      fail<OutOfMemory>("test", "no memory on the device");
    }
  }
  std::atomic<int> left_;
};

std::unique_ptr<core::BatchSource> prefetcher(bool once, std::unique_ptr<CopyStream> stream) {
  return std::make_unique<Prefetcher>(std::make_unique<Slots>(), std::move(stream), once);
}

testing::Batches expected() {
  return testing::take_all([] { return prefetcher(false, std::make_unique<LateStream>()); }, kCalls);
}

TEST(PrefetcherMemory, ItsThreadLosesNothing) {
  for (const bool once : {false, true}) {
    const auto make = [&] {
      const MayAllocate here;
      return prefetcher(once, std::make_unique<LateStream>());
    };
    EXPECT_GT(testing::loses_nothing_at_new(make, kCalls, Whose::kChosen), 10);
    testing::loses_nothing_at_tensors(make, kCalls);
  }
}

TEST(PrefetcherMemory, ItsConsumerLosesNothing) {
  const auto make = [&] { return prefetcher(true, std::make_unique<LateStream>()); };
  testing::loses_nothing_at_new(make, kCalls, Whose::kMine);
}

TEST(PrefetcherMemory, AFailedCopyIsMadeAgain) {
  const testing::Batches batches = expected();
  for (const bool once : {false, true}) {
    for (int k = 1;; ++k) {
      SCOPED_TRACE(k);
      FailingStream::failures = 0;
      const auto source = prefetcher(once, std::make_unique<FailingStream>(k));
      int errors = 0;
      for (const std::optional<core::Batch>& batch : batches) {
        std::optional<core::Batch> got;
        try {
          got = source->next();
        } catch (const OutOfMemory&) {
          ++errors;
          got = source->next();
        }
        testing::expect_same(got, batch);
      }
      if (FailingStream::failures == 0) {
        ASSERT_GT(k, 3 * 6) << "3 batches of 2 copies, 2 uses, events and a wait were copied";
        break;
      }
      EXPECT_LE(errors, 1);
    }
  }
}

// Its thread tries again when the consumer does, and not before: else errors of the past would come when there is
// memory again.
TEST(PrefetcherMemory, AFailureThatLastsIsThrownAtEachCall) {
  const testing::Batches batches = expected();
  FailingStream::failures = 0;
  FailingStream::always = true;
  const auto source = prefetcher(false, std::make_unique<FailingStream>(0));
  for (int call = 0; call < 5; ++call) {
    EXPECT_THROW((void)source->next(), OutOfMemory);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(FailingStream::failures, 5);
  FailingStream::always = false;
  for (const std::optional<core::Batch>& batch : batches) {
    testing::expect_same(source->next(), batch);
  }
}

TEST(PrefetcherMemory, EndsAfterAnyFailure) {
  for (int k = 1; k < 40; ++k) {
    const auto source = prefetcher(false, std::make_unique<FailingStream>(k));
    try {
      for (int call = 0; call < k % 5; ++call) {
        (void)source->next();
      }
    } catch (const OutOfMemory&) {
      continue;
    }
  }
}

TEST(PrefetcherMemory, WithoutAThreadThereIsATypedError) {
  auto stream = std::make_unique<LateStream>();
  const testing::NoThreads none;
  try {
    (void)prefetcher(false, std::move(stream));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("[device.prefetcher] the system cannot start the thread"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stoker::device
