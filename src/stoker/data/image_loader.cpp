// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/image_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

ImageLoaderOptions checked(ImageLoaderOptions options) {
  if (options.split.labels.size() != options.split.samples.size()) {
    fail<ConfigError>("data.loader", "the {} split has {} samples and {} labels", options.split.name,
                      options.split.samples.size(), options.split.labels.size());
  }
  if (options.depth < 1 || options.depth > 1024) {
    fail<ConfigError>("data.loader", "depth must be in 1 ... 1024 batches, got {}", options.depth);
  }
  const bool even = options.ranks > 0 && options.batch % options.ranks == 0;
  augment::check(options.mix, even ? options.batch / options.ranks : 1);
  return options;
}

// "[data.jpeg] a/1.jpg: is empty" to "is empty".
std::string without_name(std::string_view message, std::string_view name) {
  const std::size_t at = message.find(name);
  const bool named = at != std::string_view::npos && message.substr(at + name.size()).starts_with(": ");
  return std::string(named ? message.substr(at + name.size() + 2) : message);
}

SamplerOptions sampler_options(const ImageLoaderOptions& options) {
  return {.samples = options.split.size(),
          .batch = options.batch,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .drop_tail = options.drop_tail,
          .rank = options.rank,
          .ranks = options.ranks};
}

}  // namespace

ImageLoader::ImageLoader(ImageLoaderOptions options)
    : options_(checked(std::move(options))),
      sampler_(sampler_options(options_)),
      reader_(options_.split.source, options_.channels, options_.policy, options_.store),
      ledger_(options_.bad, options_.split.size()),
      position_(options_.start),
      ahead_(options_.start),
      slots_(static_cast<std::size_t>(options_.depth)),
      workspaces_(static_cast<std::size_t>(std::max(options_.threads, 1))),
      mixing_(workspaces_.size()),
      pool_(options_.threads,
            [this](std::int64_t ticket, std::int64_t row, int worker) { fill(ticket, row, worker); }) {
  if (position_.epoch < 0 || position_.step < 0 || position_.step > steps_per_epoch()) {
    fail<ConfigError>("data.loader", "cannot start at epoch {}, step {}: an epoch has {} steps", position_.epoch,
                      position_.step, steps_per_epoch());
  }
  for (SampleWorkspace& workspace : workspaces_) {
    workspace.scratch.plain = options_.plain;
  }
  for (int i = 0; i < options_.depth && steps_per_epoch() > 0; ++i) {
    submit_next();
  }
}

ImageLoader::~ImageLoader() = default;

void ImageLoader::submit_next() {
  if (ahead_.step == steps_per_epoch()) {
    ahead_ = {ahead_.epoch + 1, 0};
  }
  const std::int64_t ticket = tickets_++;
  Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  sampler_.positions(ahead_.epoch, ahead_.step, slot.indices);
  const auto rows = static_cast<std::int64_t>(slot.indices.size());
  const augment::ImagePolicy& policy = options_.policy;
  const auto host = at::TensorOptions().pinned_memory(options_.pinned);
  slot.images = at::empty({rows, policy.out_height, policy.out_width, options_.channels}, host.dtype(at::kByte));
  slot.targets = at::empty({rows}, host.dtype(at::kLong));
  slot.rows = slot.images.mutable_data_ptr<std::uint8_t>();
  slot.labels = slot.targets.mutable_data_ptr<std::int64_t>();
  std::int64_t* label = slot.labels;
  for (std::int64_t& index : slot.indices) {  // from positions in the split to indices in its source
    const auto position = static_cast<std::size_t>(index);
    *label++ = options_.split.labels[position];
    index = options_.split.samples[position];
  }
  slot.bad.assign(slot.indices.size(), std::nullopt);
  slot.position = ahead_;
  if (options_.mix.on()) {
    const bool whole = sampler_.global_size(ahead_.step) == options_.batch;
    slot.mixer.begin(options_.mix, policy.out_width, policy.out_height,
                     {options_.seed, static_cast<std::uint32_t>(ahead_.epoch), static_cast<std::uint32_t>(ahead_.step),
                      static_cast<std::uint32_t>(options_.rank * rows / options_.mix.block)},
                     whole ? rows : 0);
    slot.mixed = at::empty({rows}, host.dtype(at::kLong));
    slot.shares = at::empty({rows}, host.dtype(at::kFloat));
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

void ImageLoader::fill(std::int64_t ticket, std::int64_t row, int worker) {
  Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  const auto at = static_cast<std::size_t>(row);
  SampleWorkspace& workspace = workspaces_[static_cast<std::size_t>(worker)];
  const std::int64_t index = slot.indices[at];
  reader_.prefetch(std::span<const std::int64_t>(slot.indices).subspan(at + 1));
  try {
    reader_.read_row(index, options_.seed, slot.position.epoch, bytes_of(slot, at), workspace);
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
  slot.mixer.row_read(row, good, pixels_of(slot), mixing_[static_cast<std::size_t>(worker)]);
}

bool ImageLoader::put_stand_in(Slot& slot, std::size_t row, core::BadSample& bad, SampleWorkspace& workspace) {
  constexpr std::uint16_t kOccurrence = 1;  // it may be drawn for itself in this epoch, too
  for (int attempt = 0; attempt < kStandIns; ++attempt) {
    const auto position = static_cast<std::size_t>(
        stand_in(options_.seed, slot.position.epoch, bad.index, attempt, options_.split.size()));
    const std::int64_t index = options_.split.samples[position];
    try {
      reader_.read_row(index, options_.seed, slot.position.epoch, bytes_of(slot, row), workspace, kOccurrence);
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
        slot.mixed.mutable_data_ptr<std::int64_t>()[kept] = slot.mixed.const_data_ptr<std::int64_t>()[row];
        slot.shares.mutable_data_ptr<float>()[kept] = slot.shares.const_data_ptr<float>()[row];
      }
    }
    ++kept;
  }
  if (kept == 0 && !slot.indices.empty()) {
    fail<DataError>("data.loader", "none of the {} samples of epoch {}, step {} can be had; the first: {}",
                    slot.indices.size(), slot.position.epoch, slot.position.step, slot.bad.front()->reason);
  }
  slot.indices.resize(kept);
  for (at::Tensor* each : {&slot.images, &slot.targets, &slot.mixed, &slot.shares}) {
    *each = each->defined() ? each->narrow(0, 0, static_cast<std::int64_t>(kept)) : *each;
  }
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
    slot.mixer.pair(slot.labels, static_cast<std::int64_t>(slot.indices.size()),
                    slot.mixed.mutable_data_ptr<std::int64_t>(), slot.shares.mutable_data_ptr<float>());
  }
  if (gaps) {
    close_gaps(slot);
  }
  core::Batch batch(slot.position, slot.indices);
  batch.set("image", std::move(slot.images));
  batch.set("target", std::move(slot.targets));
  if (options_.mix.on()) {
    batch.set("target_mixed", std::move(slot.mixed));
    batch.set("share", std::move(slot.shares));
  }
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
  return batch;
}

}  // namespace stoker::data
