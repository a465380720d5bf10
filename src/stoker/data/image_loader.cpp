// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/image_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/data/sampler.h"

namespace stoker::data {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostReaders = 16;                   // threads beyond the cores, for files that are waited for
constexpr double kRoomAhead = 64e6;                // bytes of batches made ahead, where depth is chosen
constexpr double kLeastAhead = 2, kMostAhead = 4;  // batches: one to take while one is filled; more evens out bursts
constexpr std::size_t kUnderWay = 4;               // batches that a consumer has at a time: step, copy, and some

ImageLoaderOptions checked(ImageLoaderOptions options) {
  if (options.split.labels.size() != options.split.samples.size()) {
    fail<ConfigError>("data.loader", "the {} split has {} samples and {} labels", options.split.name,
                      options.split.samples.size(), options.split.labels.size());
  }
  if (options.depth < 0 || options.depth > 1024) {
    fail<ConfigError>("data.loader", "depth must be in 1 ... 1024 batches, or 0 to have it chosen, got {}",
                      options.depth);
  }
  if (options.threads < 0 || options.threads > kMostThreads || options.cores < 0 || options.cores > kMostThreads) {
    fail<ConfigError>("data.loader", "threads and cores must be in 0 ... {}, got {} and {}", kMostThreads,
                      options.threads, options.cores);
  }
  const bool even = options.ranks > 0 && options.batch % options.ranks == 0;
  augment::check(options.mix, even ? options.batch / options.ranks : 1);
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
    fail<ConfigError>("data.loader", "the order is of {} samples, the {} split has {}", options.order->samples(),
                      options.split.name, options.split.size());
  }
  return options;
}

// "[data.jpeg] a/1.jpg: is empty" to "is empty".
std::string without_name(std::string_view message, std::string_view name) {
  const std::size_t at = message.find(name);
  const bool named = at != std::string_view::npos && message.substr(at + name.size()).starts_with(": ");
  return std::string(named ? message.substr(at + name.size() + 2) : message);
}

// In page-locked memory, so that a copy to a GPU need not wait.
SlotRing::Memory pinned(std::size_t bytes) {
  auto memory = std::make_shared<at::Tensor>(
      at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte).pinned_memory(true)));
  return {memory, memory->mutable_data_ptr()};
}

int depth_of(const ImageLoaderOptions& options, std::int64_t row_bytes) {
  const double bytes = static_cast<double>(row_bytes * std::max<std::int64_t>(options.batch / options.ranks, 1));
  return options.depth > 0 ? options.depth : static_cast<int>(std::clamp(kRoomAhead / bytes, kLeastAhead, kMostAhead));
}

}  // namespace

ImageLoader::ImageLoader(ImageLoaderOptions options)
    : options_(checked(std::move(options))),
      reader_(options_.split.source, options_.channels, options_.policy, options_.store),
      ledger_(options_.bad, options_.split.size()),
      position_(options_.start),
      ahead_(options_.start),
      ring_(places().end, static_cast<std::size_t>(depth_of(options_, reader_.row_bytes())) + kUnderWay,
            options_.pinned ? pinned : SlotRing::pageable),
      slots_(static_cast<std::size_t>(depth_of(options_, reader_.row_bytes()))),
      gate_(std::max(options_.cores, 1)),
      workspaces_(static_cast<std::size_t>(most_threads())),
      mixing_(workspaces_.size()),
      pool_(options_.threads,
            [this](std::int64_t ticket, std::int64_t row, int worker) { fill(ticket, row, worker); }) {
  if (position_.epoch < 0 || position_.step < 0 || position_.step > steps_per_epoch()) {
    fail<ConfigError>("data.loader", "cannot start at epoch {}, step {}: an epoch has {} steps", position_.epoch,
                      position_.step, steps_per_epoch());
  }
  if (options_.threads > 0 && options_.cores > 0) {
    governor_.emplace(ThreadLimits{options_.threads, options_.cores, most_threads()});
  }
  for (SampleWorkspace& workspace : workspaces_) {
    workspace.scratch.plain = options_.plain;
    workspace.gate = governor_ ? &gate_ : nullptr;
    workspace.laps.on_enter = options_.on_stage;
  }
  for (std::size_t i = 0; i < slots_.size() && steps_per_epoch() > 0; ++i) {
    submit_next();
  }
}

ImageLoader::~ImageLoader() = default;

int ImageLoader::most_threads() const {
  const int least = std::max(options_.threads, 1);
  return options_.cores == 0 ? least : std::max(least, options_.cores + kMostReaders);
}

ImageLoader::Places ImageLoader::places() const {
  constexpr std::size_t kLine = 64;  // bytes: where fields begin
  const auto rounded = [](std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  const auto rows = static_cast<std::size_t>((options_.batch + options_.ranks - 1) / options_.ranks);
  Places places;
  places.labels = rounded(rows * static_cast<std::size_t>(reader_.row_bytes()) + augment::kSlack);
  places.mixed = rounded(places.labels + rows * sizeof(std::int64_t));
  places.shares = rounded(places.mixed + (options_.mix.on() ? rows * sizeof(std::int64_t) : 0));
  places.end = places.shares + (options_.mix.on() ? rows * sizeof(float) : 0);
  return places;
}

void ImageLoader::submit_next() {
  if (ahead_.step == steps_per_epoch()) {
    ahead_ = {ahead_.epoch + 1, 0};
  }
  const std::int64_t ticket = tickets_++;
  Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  options_.order->positions(ahead_.epoch, ahead_.step, slot.indices);
  slot.first_draw = options_.order->first_draw(ahead_.step);
  slot.memory = ring_.take();
  const Places at = places();
  slot.rows = reinterpret_cast<std::uint8_t*>(slot.memory.get());
  slot.labels = reinterpret_cast<std::int64_t*>(slot.memory.get() + at.labels);
  slot.mixed = reinterpret_cast<std::int64_t*>(slot.memory.get() + at.mixed);
  slot.shares = reinterpret_cast<float*>(slot.memory.get() + at.shares);
  std::int64_t* label = slot.labels;
  for (std::int64_t& index : slot.indices) {  // from positions in the split to indices in its source
    *label++ = options_.split.labels[index];
    index = options_.split.samples[index];
  }
  slot.bad.assign(slot.indices.size(), std::nullopt);
  slot.position = ahead_;
  const auto rows = static_cast<std::int64_t>(slot.indices.size());
  if (options_.mix.on()) {
    const bool whole = global_size(ahead_) == options_.batch;
    slot.mixer.begin(options_.mix, options_.policy.out_width, options_.policy.out_height,
                     {options_.seed, static_cast<std::uint32_t>(ahead_.epoch), static_cast<std::uint32_t>(ahead_.step),
                      static_cast<std::uint32_t>(options_.rank * rows / options_.mix.block)},
                     whole ? rows : 0);
  }
  ++ahead_.step;
  pool_.submit(ticket, rows);
}

std::span<std::uint8_t> ImageLoader::bytes_of(const Slot& slot, std::size_t row) const {
  const auto bytes = static_cast<std::size_t>(reader_.row_bytes());
  return {slot.rows + row * bytes, bytes};
}

// The batch's first row.
augment::Pixels ImageLoader::pixels_of(const Slot& slot) const {
  return {slot.rows, options_.policy.out_width, options_.policy.out_height, options_.channels};
}

// A row's number where a sample may come again; what stands in may be drawn for itself in the epoch, too.
std::uint32_t ImageLoader::occurrence(const Slot& slot, std::size_t row, bool stand_in) {
  constexpr std::uint32_t kStandIn = 1U << 31;  // above every draw
  if (!slot.first_draw) {
    return stand_in ? 1 : 0;
  }
  const std::uint32_t draw = static_cast<std::uint32_t>(*slot.first_draw) + static_cast<std::uint32_t>(row);
  return stand_in ? draw | kStandIn : draw;
}

void ImageLoader::fill(std::int64_t ticket, std::int64_t row, int worker) {
  Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  const auto at = static_cast<std::size_t>(row);
  SampleWorkspace& workspace = workspaces_[static_cast<std::size_t>(worker)];
  const std::int64_t index = slot.indices[at];
  reader_.prefetch(std::span<const std::int64_t>(slot.indices).subspan(at + 1));
  try {
    reader_.read_row(index, options_.seed, slot.position.epoch, bytes_of(slot, at), workspace,
                     occurrence(slot, at, false));
  } catch (const DataError& error) {
    if (ledger_.on_bad() == OnBad::kRaise) {
      throw;
    }
    core::BadSample bad{slot.position.epoch, slot.position.step, index, reader_.name(index), {}, {}};
    bad.reason = without_name(error.what(), bad.name);
    if (ledger_.on_bad() == OnBad::kReplace && !put_stand_in(slot, at, bad, workspace)) {
      throw;  // so many are bad that chance finds no good one
    }
    slot.bad[at] = std::move(bad);
  }
  const bool good = !slot.bad[at] || !slot.bad[at]->replaced_by.empty();
  workspace.laps.enter(Stage::kCollate);
  slot.mixer.row_read(row, good, pixels_of(slot), mixing_[static_cast<std::size_t>(worker)]);
  workspace.laps.end();
}

bool ImageLoader::put_stand_in(Slot& slot, std::size_t row, core::BadSample& bad, SampleWorkspace& workspace) {
  for (int attempt = 0; attempt < kStandIns; ++attempt) {
    const std::int64_t position =
        stand_in(options_.seed, slot.position.epoch, bad.index, attempt, options_.split.size());
    const std::int64_t index = options_.split.samples[position];
    try {
      reader_.read_row(index, options_.seed, slot.position.epoch, bytes_of(slot, row), workspace,
                       occurrence(slot, row, true));
    } catch (const DataError&) {
      continue;
    }
    slot.indices[row] = index;
    slot.labels[row] = options_.split.labels[position];
    bad.replaced_by = reader_.name(index);
    return true;
  }
  return false;
}

// Good rows move up to where left-out ones were.
void ImageLoader::close_gaps(Slot& slot) {
  std::size_t kept = 0;
  for (std::size_t row = 0; row < slot.indices.size(); ++row) {
    if (slot.bad[row] && slot.bad[row]->replaced_by.empty()) {
      continue;
    }
    if (kept < row) {
      std::ranges::copy(bytes_of(slot, row), bytes_of(slot, kept).begin());
      slot.labels[kept] = slot.labels[row];
      slot.indices[kept] = slot.indices[row];
      if (options_.mix.on()) {
        slot.mixed[kept] = slot.mixed[row];
        slot.shares[kept] = slot.shares[row];
      }
    }
    ++kept;
  }
  if (kept == 0 && !slot.indices.empty()) {
    fail<DataError>("data.loader", "none of the {} samples of epoch {}, step {} can be had; the first: {}",
                    slot.indices.size(), slot.position.epoch, slot.position.step, slot.bad.front()->reason);
  }
  slot.indices.resize(kept);
}

core::Batch ImageLoader::finish(Slot& slot) {
  bool gaps = false;
  for (const std::optional<core::BadSample>& bad : slot.bad) {
    if (bad) {
      ledger_.add(*bad);
      gaps = gaps || bad->replaced_by.empty();
    }
  }
  if (options_.mix.on()) {
    slot.mixer.pair(slot.labels, static_cast<std::int64_t>(slot.indices.size()), slot.mixed, slot.shares);
  }
  if (gaps) {
    close_gaps(slot);
  }
  core::Batch batch(slot.position, slot.indices);
  const auto rows = static_cast<std::int64_t>(slot.indices.size());
  const auto field = [&](void* at, at::IntArrayRef sizes, at::ScalarType type) {  // whose storage is the slot's
    return at::from_blob(
        at, sizes, [memory = slot.memory](void*) {}, at::TensorOptions().dtype(type));
  };
  const augment::ImagePolicy& policy = options_.policy;
  batch.set("image", field(slot.rows, {rows, policy.out_height, policy.out_width, options_.channels}, at::kByte));
  batch.set("target", field(slot.labels, {rows}, at::kLong));
  if (options_.mix.on()) {
    batch.set("target_mixed", field(slot.mixed, {rows}, at::kLong));
    batch.set("share", field(slot.shares, {rows}, at::kFloat));
  }
  slot.memory.reset();
  return batch;
}

std::optional<core::Batch> ImageLoader::next() {
  if (position_.step == steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  ++position_.step;
  core::Batch batch;
  try {
    batch = finish(slots_[static_cast<std::size_t>(pool_.take()) % slots_.size()]);
  } catch (...) {
    submit_next();  // into the slot of the batch that failed
    throw;
  }
  submit_next();
  if (governor_ && governor_->due(since_.seconds())) {
    const int threads = governor_->look(counted());
    if (threads != pool_.threads()) {
      pool_.set_threads(threads);
    }
  }
  return batch;
}

core::SourceFigures ImageLoader::counted(std::int64_t* slowest) const {
  std::vector<const StageLaps*> laps;
  for (const SampleWorkspace& workspace : workspaces_) {
    laps.push_back(&workspace.laps);
  }
  std::int64_t sample = -1;
  core::SourceFigures figures = sum(laps, sample);
  figures.wall_seconds = since_.seconds();
  figures.wait_seconds = pool_.wait_seconds();
  figures.threads = pool_.threads();
  if (slowest != nullptr) {
    *slowest = sample;
  }
  return figures;
}

std::optional<core::SourceFigures> ImageLoader::figures() const {
  std::int64_t slowest = -1;
  core::SourceFigures figures = counted(&slowest);
  figures.slowest = slowest < 0 ? "" : reader_.name(slowest);
  return figures;
}

}  // namespace stoker::data
