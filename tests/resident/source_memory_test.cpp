// SPDX-License-Identifier: Apache-2.0
// Resident images on a host or device without memory: whichever allocation fails, no batch is lost or repeated.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/resident/rows.h"
#include "stoker/resident/source.h"
#include "support/late_device.h"
#include "support/made_up_images.h"
#include "support/no_batch_lost.h"
#include "support/no_threads.h"

namespace stoker::resident {
namespace {

using testing::at_every_new;
using testing::MadeUpImages;
using testing::MayAllocate;
using testing::Whose;

constexpr augment::ImageShape kShape{10, 4, 4, 1};
constexpr std::int64_t kBatch = 4;
constexpr int kCalls = 10;  // two epochs with their ends, and some more
const c10::Device kCpu(c10::kCPU);

std::shared_ptr<MadeUpImages> images() { return std::make_shared<MadeUpImages>(kShape, kBatch); }

std::unique_ptr<core::BatchSource> made_on_the_device(core::Position start = {}) {
  return std::make_unique<ResidentSource>(nullptr, images(), kCpu, start);
}

// The first epoch comes from a loader, here another resident source.
std::unique_ptr<core::BatchSource> behind_a_loader() {
  return std::make_unique<ResidentSource>(made_on_the_device(), images(), kCpu, core::Position{},
                                          [](const std::string&) {});
}

TEST(ResidentSourceMemory, LosesNothing) {
  testing::loses_nothing_at_tensors([] { return made_on_the_device(); }, kCalls);
  EXPECT_GT(testing::loses_nothing_at_new([] { return made_on_the_device(); }, kCalls, Whose::kMine), 10);
}

// Including the start of the thread that copies the images, which may fail at the end of an epoch.
TEST(ResidentSourceMemory, LosesNothingBehindALoader) {
  EXPECT_GT(testing::loses_nothing_at_new(behind_a_loader, kCalls, Whose::kMine), 10);
  testing::loses_nothing_at_new(behind_a_loader, kCalls, Whose::kOthers);
}

TEST(ResidentSourceMemory, StaysWithTheLoaderIfNoThreadCanStart) {
  const testing::Batches expected = testing::take_all(behind_a_loader, kCalls);
  const testing::NoThreads none;
  std::vector<std::string> remarks;
  ResidentSource source(made_on_the_device(), images(), kCpu, {},
                        [&](const std::string& remark) { remarks.push_back(remark); });
  for (const std::optional<core::Batch>& batch : expected) {
    testing::expect_same(source.next(), batch);
  }
  EXPECT_FALSE(source.resident());
  ASSERT_FALSE(remarks.empty());
  EXPECT_NE(remarks[0].find("cannot start the thread"), std::string::npos) << remarks[0];
}

// Marks the thread that computes rows.
class Chosen final : public augment::ResidentImages {
 public:
  [[nodiscard]] augment::ImageShape shape() const override { return kShape; }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return images_.steps_per_epoch(); }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override {
    testing::choose_this_thread();
    images_.add_rows(epoch, step, rows);
  }
  void read(std::int64_t, std::span<std::uint8_t>) const override {}

 private:
  MadeUpImages images_{kShape, kBatch};
};

std::vector<std::int64_t> indices_of(ResidentRows& rows, int chunks) {
  std::vector<std::int64_t> all;
  for (int chunk = 0, errors = 0; chunk < chunks && errors < 3;) {
    try {
      const ResidentChunk next = rows.next();
      const MayAllocate here;
      all.insert(all.end(), next.indices.begin(), next.indices.end());
      ++chunk;
    } catch (const std::bad_alloc&) {
      ++errors;
    }
  }
  return all;
}

TEST(ResidentRowsMemory, TheirThreadLosesNothing) {
  const auto chosen = std::make_shared<Chosen>();
  ResidentRows whole(chosen, {}, std::make_unique<testing::LateStream>());
  const std::vector<std::int64_t> expected = indices_of(whole, 6);
  const int failures = at_every_new(Whose::kChosen, [&] {
    const MayAllocate here;
    ResidentRows rows(chosen, {}, std::make_unique<testing::LateStream>());
    EXPECT_EQ(indices_of(rows, 6), expected);
  });
  EXPECT_GT(failures, 10);
}

TEST(ResidentRowsMemory, WithoutAThreadThereIsATypedError) {
  auto stream = std::make_unique<testing::LateStream>();
  const testing::NoThreads none;
  EXPECT_THROW(ResidentRows(images(), {}, std::move(stream)), ConfigError);
}

}  // namespace
}  // namespace stoker::resident
