// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/image_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"
#include "stoker/core/guarded_memory.h"
#include "stoker/core/load_time.h"
#include "stoker/data/load/image_loader_team.h"
#include "stoker/data/order/equal_batches.h"
#include "stoker/data/order/sampler.h"

namespace stoker::data {
namespace {

constexpr int kMostThreads = 1024;
constexpr double kRoomAhead = 64e6;                // bytes of prefetched batches if depth is automatic
constexpr double kLeastAhead = 2, kMostAhead = 4;  // batches: one to take while one is filled; more for bursts
constexpr std::size_t kUnderWay = 4;               // batches that a consumer holds at a time: step, copy, and some more

// Page-locked memory allows asynchronous copies to a GPU.
SlotRing::Memory pinned(std::size_t bytes) {
  auto memory = std::make_shared<at::Tensor>(core::guarded(
      at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte).pinned_memory(true))));
  return {memory, memory->mutable_data_ptr()};
}

// Ends the stages of a sample, also after an exception.
class EndOfSample {
 public:
  explicit EndOfSample(StageLaps& laps) : laps_(laps) {}
  EndOfSample(const EndOfSample&) = delete;
  EndOfSample& operator=(const EndOfSample&) = delete;
  ~EndOfSample() { laps_.end(); }

 private:
  StageLaps& laps_;
};

// Without threads a batch is made on request, so one at a time.
std::size_t depth_of(const ImageLoaderOptions& options, std::int64_t row_bytes) {
  if (options.threads == 0) {
    return 1;
  }
  const double bytes = static_cast<double>(row_bytes * std::max<std::int64_t>(options.batch / options.ranks, 1));
  return options.depth > 0 ? static_cast<std::size_t>(options.depth)
                           : static_cast<std::size_t>(std::clamp(kRoomAhead / bytes, kLeastAhead, kMostAhead));
}

}  // namespace

ImageLoaderOptions checked(ImageLoaderOptions options) {
  if (options.split.labels.size() != options.split.samples.size()) {
    fail<ConfigError>("data.loader", "the {} split has {} samples but {} labels", options.split.name,
                      options.split.samples.size(), options.split.labels.size());
  }
  if (options.depth < 0 || options.depth > 1024) {
    fail<ConfigError>("data.loader", "depth must be 1 to 1024 batches, or 0 for automatic, got {}", options.depth);
  }
  if (options.threads < 0 || options.threads > kMostThreads || options.cores < 0 || options.cores > kMostThreads) {
    fail<ConfigError>("data.loader", "threads and cores must be 0 to {}, got {} and {}", kMostThreads, options.threads,
                      options.cores);
  }
  check_rank(options.rank, options.ranks);
  augment::check(options.mix, options.batch % options.ranks == 0 ? options.batch / options.ranks : 1);
  if (!options.order) {
    options.order = std::make_shared<Sampler>(SamplerOptions{.samples = options.split.size(),
                                                             .batch = options.batch,
                                                             .seed = options.seed,
                                                             .shuffle = options.shuffle,
                                                             .drop_tail = options.drop_tail,
                                                             .rank = options.rank,
                                                             .ranks = options.ranks});
  }
  if (options.order->samples() != options.split.size()) {
    fail<ConfigError>("data.loader", "the order has {} samples, but the {} split has {}", options.order->samples(),
                      options.split.name, options.split.size());
  }
  const std::int64_t whole = options.order->steps_per_epoch() > 1 ? options.order->global_size(0, 0) : options.batch;
  if (options.mix.on() && whole != options.batch) {
    fail<ConfigError>("data.loader", "the order has batches of {} samples, but mixing needs batches of {}", whole,
                      options.batch);
  }
  return options;
}

ImageLoader::ImageLoader(ImageLoaderOptions options)
    : options_(checked(std::move(options))),
      reader_(options_.split.source, options_.channels, options_.policy,
              {options_.store, options_.known_bad, options_.limits, options_.rows}),
      ledger_(options_.bad, options_.split.size() / options_.ranks),  // each rank sees its part
      position_(options_.start),
      ahead_(options_.start),
      ring_(shape().bytes(), depth_of(options_, reader_.row_bytes()) + kUnderWay,
            options_.pinned ? pinned : SlotRing::pageable),
      slots_(depth_of(options_, reader_.row_bytes())),
      gate_(std::max(options_.cores, 1)),
      workspaces_(static_cast<std::size_t>(most_threads())),
      mixing_(workspaces_.size()),
      pool_(
          options_.threads, [this](std::int64_t ticket, std::int64_t row, int worker) { fill(ticket, row, worker); },
          options_.threads == 0 ? on_operator_threads(most_threads()) : nullptr) {
  if (position_.epoch < 0 || position_.step < 0 || position_.step > steps_per_epoch()) {
    fail<ConfigError>("data.loader", "cannot start at epoch {}, step {}; an epoch has {} steps", position_.epoch,
                      position_.step, steps_per_epoch());
  }
  if (options_.threads > 0 && options_.cores > 0) {
    governor_.emplace(ThreadLimits{options_.threads, options_.cores, most_threads()});
  }
  for (SampleWorkspace& workspace : workspaces_) {
    workspace.scratch.kernels = options_.plain ? &augment::plain_kernels() : nullptr;
    workspace.gate = governor_ ? &gate_ : nullptr;
    workspace.laps.on_enter = options_.on_stage;
  }
  if (options_.threads > 0) {
    submit_ahead();
  }
}

ImageLoader::~ImageLoader() = default;

int ImageLoader::most_threads() const {
  if (options_.threads == 0) {
    return std::max(options_.cores, 1);
  }
  return options_.cores == 0 ? options_.threads : std::max(options_.threads, options_.cores + core::kMostReaders);
}

ImageSlotShape ImageLoader::shape() const {
  const augment::ImagePolicy& policy = options_.policy;
  return {.rows = (options_.batch + options_.ranks - 1) / options_.ranks,
          .height = policy.out_height,
          .width = policy.out_width,
          .channels = options_.channels,
          .mixed = options_.mix.on()};
}

// Submits batches for all free slots, also of the next epoch unless `once` is set. Fewer if that fails while batches
// are under way: the error comes again once they are used up.
void ImageLoader::submit_ahead() {
  const auto slots = static_cast<std::int64_t>(slots_.size());
  const auto wanted = [&] {
    return ahead_.step < steps_per_epoch() || !options_.once || position_.epoch > ahead_.epoch;
  };
  while (steps_per_epoch() > 0 && tickets_ - taken_ < slots && wanted()) {
    try {
      submit_next();
    } catch (...) {
      if (tickets_ == taken_) {
        throw;
      }
      return;
    }
  }
}

void ImageLoader::submit_next() {
  const core::Position at = ahead_.step == steps_per_epoch() ? core::Position{ahead_.epoch + 1, 0} : ahead_;
  ImageSlot& slot = slot_of(tickets_);
  slot.reported = 0;
  pool_.submit(tickets_, begin(slot, at));
  ++tickets_;  // from here on nothing fails
  ahead_ = {at.epoch, at.step + 1};
}

// The batch that failed. Its rows may be half written or half mixed, so it starts over; all that it is made of depends
// only on its position.
void ImageLoader::submit_again() {
  ImageSlot& slot = slot_of(taken_);
  pool_.submit(taken_, begin(slot, slot.position), /*first=*/true);
  again_ = false;
}

// Returns the number of rows.
std::int64_t ImageLoader::begin(ImageSlot& slot, core::Position at) {
  options_.order->positions(at.epoch, at.step, slot.indices);
  slot.first_draw = options_.order->first_draw(at.step);
  slot.begin(shape(), ring_);
  std::int64_t* label = slot.labels;
  for (std::int64_t& index : slot.indices) {  // positions in the split become indices in its source
    *label++ = options_.split.labels[index];
    index = options_.split.samples[index];
  }
  slot.position = at;
  if (options_.ranks > 1) {  // unreadable samples included, which a whole batch may leave out
    slot.global_size = global_size(at);
    slot.first_row = slice_of_rank(0, slot.global_size, options_.rank, options_.ranks).first;
  }
  const auto rows = static_cast<std::int64_t>(slot.indices.size());
  if (options_.mix.on()) {
    const bool whole = global_size(at) == options_.batch;
    slot.mixer.begin(options_.mix, options_.policy.out_width, options_.policy.out_height,
                     {options_.seed, static_cast<std::uint32_t>(at.epoch), static_cast<std::uint32_t>(at.step),
                      static_cast<std::uint32_t>(options_.rank * rows / options_.mix.block)},
                     whole ? rows : 0);
  }
  return rows;
}

// The number of a row if a sample may occur again; a replacement may also be drawn for itself in the epoch.
std::uint32_t ImageLoader::occurrence(const ImageSlot& slot, std::size_t row, bool stand_in) {
  constexpr std::uint32_t kStandIn = 1U << 31;  // above every draw
  if (!slot.first_draw) {
    return stand_in ? 1 : 0;
  }
  const std::uint32_t draw = static_cast<std::uint32_t>(*slot.first_draw) + static_cast<std::uint32_t>(row);
  return stand_in ? draw | kStandIn : draw;
}

void ImageLoader::fill(std::int64_t ticket, std::int64_t row, int worker) {
  ImageSlot& slot = slot_of(ticket);
  const auto at = static_cast<std::size_t>(row);
  SampleWorkspace& workspace = workspaces_[static_cast<std::size_t>(worker)];
  const EndOfSample end(workspace.laps);
  const std::int64_t index = slot.indices[at];
  reader_.prefetch(std::span<const std::int64_t>(slot.indices).subspan(at + 1));
  try {
    reader_.read_row(index, options_.seed, slot.position.epoch, slot.row(at), workspace, occurrence(slot, at, false));
  } catch (const DataError& error) {
    if (ledger_.on_bad() == OnBad::kRaise) {
      throw;
    }
    ImageSlot::Bad bad;
    bad.sample.epoch = slot.position.epoch;
    bad.sample.step = slot.position.step;
    bad.sample.index = index;
    bad.sample.name = reader_.name(index);
    bad.sample.reason = without_name(error.what(), bad.sample.name);
    if (ledger_.on_bad() == OnBad::kReplace && !put_stand_in(slot, at, bad, workspace)) {
      throw;  // too many are bad to find a good one
    }
    slot.bad[at] = std::make_unique<ImageSlot::Bad>(std::move(bad));
  }
  const bool good = !slot.bad[at] || slot.bad[at]->stand_in >= 0;
  workspace.laps.enter(Stage::kCollate);
  slot.mixer.row_read(row, good, slot.pixels(), mixing_[static_cast<std::size_t>(worker)]);
}

bool ImageLoader::put_stand_in(ImageSlot& slot, std::size_t row, ImageSlot::Bad& bad, SampleWorkspace& workspace) {
  for (int attempt = 0; attempt < kStandIns; ++attempt) {
    const std::int64_t position =
        stand_in(options_.seed, slot.position.epoch, bad.sample.index, attempt, options_.split.size());
    const std::int64_t index = options_.split.samples[position];
    try {
      reader_.read_row(index, options_.seed, slot.position.epoch, slot.row(row), workspace,
                       occurrence(slot, row, true));
    } catch (const DataError&) {
      continue;
    }
    slot.labels[row] = options_.split.labels[position];
    bad.stand_in = index;
    bad.sample.replaced_by = reader_.name(index);
    return true;
  }
  return false;
}

core::Batch ImageLoader::finish(ImageSlot& slot) {
  bool any_bad = false;
  for (std::size_t row = 0; row < slot.bad.size(); ++row) {
    if (!slot.bad[row]) {
      continue;
    }
    any_bad = true;
    if (row >= slot.reported) {
      ledger_.add(slot.bad[row]->sample);
      slot.reported = row + 1;
    }
    ledger_.check_budget();
  }
  if (options_.mix.on()) {
    slot.mixer.pair(slot.labels, static_cast<std::int64_t>(slot.indices.size()), slot.mixed, slot.shares);
  }
  if (any_bad) {
    slot.put_stand_ins();
  }
  return slot.finish();
}

std::optional<core::Batch> ImageLoader::next() {
  if (position_.step == steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  if (governor_) {
    watch_for_pauses();
  }
  submit_ahead();
  if (again_) {
    submit_again();
  }
  core::Batch batch;
  try {
    batch = finish(slot_of(pool_.take()));
  } catch (const DataError&) {
    consumed();
    throw;
  } catch (...) {
    again_ = true;
    throw;
  }
  consumed();
  if (governor_) {
    govern();
  }
  return batch;
}

// Nothing may be thrown from here on, or the batch would be lost. Without threads the next batch waits for the next
// call: by then the consumer may have released its batch, and the next one reuses that memory while it is still in the
// caches.
void ImageLoader::consumed() {
  ++position_.step;
  ++taken_;
  if (options_.threads > 0) {
    try {
      submit_ahead();
    } catch (...) {  // thrown again by the next call
      return;
    }
  }
}

}  // namespace stoker::data
