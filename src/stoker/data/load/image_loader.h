// SPDX-License-Identifier: Apache-2.0
// Loads batches of labelled images: threads read, decode and augment, several batches ahead, directly into the memory
// of the batch. The output depends only on the options and the position, never on the threads. One consumer at a time.
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
  augment::Mix mix;  // MixUp and CutMix within whole batches
  // Order of the split's samples, for the same batch and ranks; null: every sample once per epoch, by the options
  // below.
  std::shared_ptr<const BatchOrder> order;
  std::int64_t batch = 64;  // global: samples over all ranks
  std::uint64_t seed = 0;   // for the order and for augmentation
  bool shuffle = true;
  bool drop_tail = false;
  int threads = 1;  // besides the caller's; 0: next() does the work
  // With threads > 0: maximum number of threads that compute at once; the number of threads is then tuned while
  // running, starting at `threads`. 0: `threads` is fixed. With threads == 0: maximum number of intra-op threads that
  // load together in next() if a batch is large enough. 0: only the caller's thread.
  int cores = 0;
  int depth = 0;        // batches ahead of the consumer; 0: 2 to 4, by their size; not used without threads
  bool pinned = false;  // page-locked memory, for asynchronous copies to a GPU; needs CUDA
  BadSampleOptions bad;
  DecodeLimits limits;  // per image
  bool plain = false;   // no vector instructions: same pixels, slower; for tests
  std::function<void(Stage, std::int64_t sample)> on_stage =
      {};                               // on the threads, at the start of each stage; for tests
  std::shared_ptr<PixelStore> store;    // keeps decoded images of split.source with these channels; null: keeps none
  std::shared_ptr<KnownBad> known_bad;  // known bad images of split.source, which are not tried; null: all are tried
  std::shared_ptr<RowIndex> rows;       // rows of JPEGs of split.source; null: none; a store uses none
  bool once = false;                    // batches of the next epoch are only made on request
  core::Position start;                 // first batch to hand out; step may equal steps_per_epoch(): end of the epoch
  int rank = 0;
  int ranks = 1;
};
// The same options with an order. ConfigError for values out of range.
[[nodiscard]] ImageLoaderOptions checked(ImageLoaderOptions options);

// Hands out batches with "image", uint8 [B, H, W, C] contiguous, and "target", int64 [B], both on the CPU. indices()
// are indices into the split's source. With `mix` also "target_mixed", int64 [B], the target of the partner, and
// "share", float32 [B], the share of a row's own pixels. Rows are not mixed (share 1, own target) in a short batch and
// in a block with a skipped row. After the last batch of an epoch next() returns an empty value once, then the next
// epoch, which the threads have begun by then. options.bad decides about unreadable samples; DataError comes at the
// batch of the sample, and the next call continues with the batch after it. A batch that fails for another reason, such
// as no memory in a thread, is made again by the next call. Where batches ahead cannot be begun, fewer are made ahead.
class ImageLoader final : public core::BatchSource {
 public:
  // ConfigError for values out of range.
  explicit ImageLoader(ImageLoaderOptions options);
  ~ImageLoader() override;  // at any time, without delay

  [[nodiscard]] std::optional<core::Batch> next() override;

  [[nodiscard]] std::int64_t steps_per_epoch() const { return options_.order->steps_per_epoch(); }
  // Number of samples of the global batch at a position.
  [[nodiscard]] std::int64_t global_size(core::Position at) const {
    return options_.order->global_size(at.epoch, at.step);
  }
  // Position of the next batch; at the end of an epoch step equals steps_per_epoch().
  [[nodiscard]] core::Position position() const { return position_; }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;

 private:
  [[nodiscard]] ImageSlotShape shape() const;
  [[nodiscard]] int most_threads() const;
  [[nodiscard]] core::SourceFigures counted(std::int64_t* slowest = nullptr) const;
  [[nodiscard]] ImageSlot& slot_of(std::int64_t ticket) {
    return slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  }
  void submit_ahead();
  void submit_next();
  void submit_again();
  std::int64_t begin(ImageSlot& slot, core::Position at);
  void consumed();
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
  std::int64_t taken_ = 0;    // tickets taken so far
  bool again_ = false;        // ticket taken_ failed and must be submitted again
  SlotRing ring_;
  std::vector<ImageSlot> slots_;
  CpuGate gate_;
  std::vector<SampleWorkspace> workspaces_;
  std::vector<std::vector<std::uint8_t>> mixing_;  // one row per worker
  Stopwatch since_;
  double left_at_ = 0, usual_gap_ = 0;  // time when next() last returned; usual time until the next call, seconds
  std::optional<ThreadGovernor> governor_;
  RowPool pool_;  // last member: its threads use all members above and must end first
};

}  // namespace stoker::data
