// SPDX-License-Identifier: Apache-2.0
// Labelled images as batches: threads read, decode and augment, several batches ahead, straight into the batch's
// memory. What comes out depends on the options and the position alone, never on the threads. One consumer at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stoker/augment/image_policy.h"
#include "stoker/augment/mix.h"
#include "stoker/base/clock.h"
#include "stoker/core/batch_source.h"
#include "stoker/data/folder/image_folder.h"
#include "stoker/data/folder/stage_laps.h"
#include "stoker/data/load/bad_samples.h"
#include "stoker/data/load/cpu_gate.h"
#include "stoker/data/load/image_loader_slot.h"
#include "stoker/data/load/row_pool.h"
#include "stoker/data/load/sample_reader.h"
#include "stoker/data/load/slot_ring.h"
#include "stoker/data/load/thread_governor.h"
#include "stoker/data/order/batch_order.h"

namespace stoker::data {

struct ImageLoaderOptions {
  ImageSplit split;
  int channels = 3;  // 1 or 3
  augment::ImagePolicy policy;
  augment::Mix mix;  // of the rows of whole batches
  // Of the split's samples, over the same batch and ranks; null: every sample once an epoch, by the options below.
  std::shared_ptr<const BatchOrder> order;
  std::int64_t batch = 64;  // global: samples over all ranks
  std::uint64_t seed = 0;   // of the order and of what is drawn
  bool shuffle = true;
  bool drop_tail = false;
  int threads = 1;  // beside the caller's; 0: next() does the work
  // With threads > 0: as many as may compute at once, and threads is where a search for the fewest that suffice begins;
  // 0: threads stays. With threads 0: as many of the threads that an operator of the caller would use load together
  // in next(), where a batch is worth it; 0: the caller's alone.
  int cores = 0;
  int depth = 0;        // batches ahead of the consumer; 0: 2 to 4, as they are large; without threads there are none
  bool pinned = false;  // page-locked memory, so that a copy to a GPU need not wait; needs CUDA
  BadSampleOptions bad;
  DecodeLimits limits;  // of each image
  bool plain = false;   // without vector instructions: the same pixels, slower; for tests
  std::function<void(Stage, std::int64_t sample)> on_stage = {};  // on the threads, as each stage begins; for tests
  std::shared_ptr<PixelStore> store;    // images stay decoded in it; of split.source with these channels; null: none do
  std::shared_ptr<KnownBad> known_bad;  // images that need not be tried; of split.source; null: all are
  bool once = false;                    // one epoch: batches of the next are not made before they are asked for
  core::Position start;  // the first batch to hand out; step may equal steps_per_epoch(): the epoch's end
  int rank = 0;
  int ranks = 1;
};
// The same with an order. ConfigError for numbers that cannot be.
[[nodiscard]] ImageLoaderOptions checked(ImageLoaderOptions options);

// Hands out batches with "image", uint8 [B, H, W, C] contiguous, and "target", int64 [B], both on the CPU; indices()
// are indices into the split's source. With `mix` on also "target_mixed", int64 [B], the partner's, and "share",
// float32 [B], of a row's own pixels: 1, with its own target, in a short batch, whose slices need not hold whole
// blocks, and in a block of which a row was left out. After the last batch of an epoch comes one empty answer, then the
// next epoch, on which the threads are at work by then. A sample that cannot be had is raised, left out or replaced, as
// options.bad says; DataError comes at the batch it belongs to, and the next call goes on with the batch after it.
class ImageLoader final : public core::BatchSource {
 public:
  // ConfigError for numbers that cannot be.
  explicit ImageLoader(ImageLoaderOptions options);
  ~ImageLoader() override;  // at any moment, promptly

  [[nodiscard]] std::optional<core::Batch> next() override;

  [[nodiscard]] std::int64_t steps_per_epoch() const { return options_.order->steps_per_epoch(); }
  // Samples of the global batch at a position.
  [[nodiscard]] std::int64_t global_size(core::Position at) const {
    return options_.order->global_size(at.epoch, at.step);
  }
  // The batch that next() hands out next; at an epoch's end step equals steps_per_epoch().
  [[nodiscard]] core::Position position() const { return position_; }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;

 private:
  [[nodiscard]] ImageSlotShape shape() const;
  [[nodiscard]] int most_threads() const;
  [[nodiscard]] core::SourceFigures counted(std::int64_t* slowest = nullptr) const;
  void submit_ahead();
  void refill();
  void submit_next();
  void watch_for_pauses();
  void govern();
  [[nodiscard]] static std::uint32_t occurrence(const ImageSlot& slot, std::size_t row, bool stand_in);
  void fill(std::int64_t ticket, std::int64_t row, int worker);
  bool put_stand_in(ImageSlot& slot, std::size_t row, ImageSlot::Bad& bad, SampleWorkspace& workspace);
  core::Batch finish(ImageSlot& slot);

  ImageLoaderOptions options_;  // with an order
  SampleReader reader_;
  BadSampleLedger ledger_;
  core::Position position_;   // of the next batch to hand out
  core::Position ahead_;      // of the next batch to submit
  std::int64_t tickets_ = 0;  // submitted so far; a ticket's slot is slots_[ticket % slots]
  std::int64_t taken_ = 0;    // of these
  SlotRing ring_;
  std::vector<ImageSlot> slots_;
  CpuGate gate_;
  std::vector<SampleWorkspace> workspaces_;
  std::vector<std::vector<std::uint8_t>> mixing_;  // a row for each worker
  Stopwatch since_;
  double left_at_ = 0, usual_gap_ = 0;  // seconds since then: when next() last returned; until it was called again
  std::optional<ThreadGovernor> governor_;
  RowPool pool_;  // last: its threads use all of the above and end first
};

}  // namespace stoker::data
