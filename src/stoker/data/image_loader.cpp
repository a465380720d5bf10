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
      reader_(options_.split.source, options_.channels, options_.policy),
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
  const at::Tensor images =
      at::empty({rows, policy.out_height, policy.out_width, options_.channels}, host.dtype(at::kByte));
  const at::Tensor targets = at::empty({rows}, host.dtype(at::kLong));
  auto* target = targets.mutable_data_ptr<std::int64_t>();
  for (std::int64_t& index : slot.indices) {  // from positions in the split to indices in its source
    const auto position = static_cast<std::size_t>(index);
    *target++ = options_.split.labels[position];
    index = options_.split.samples[position];
  }
  slot.rows = images.mutable_data_ptr<std::uint8_t>();
  slot.epoch = ahead_.epoch;
  slot.batch = core::Batch(ahead_, slot.indices);
  slot.batch.set("image", images);
  slot.batch.set("target", targets);
  if (options_.mix.on()) {
    draw_mix(slot);
  }
  ++ahead_.step;
  pool_.submit(ticket, rows);
}

void ImageLoader::draw_mix(Slot& slot) {
  const auto rows = static_cast<std::int64_t>(slot.indices.size()), block = std::int64_t{options_.mix.block};
  const auto host = at::TensorOptions().pinned_memory(options_.pinned);
  const at::Tensor mixed = at::empty({rows}, host.dtype(at::kLong)), share = at::empty({rows}, host.dtype(at::kFloat));
  const auto* own = slot.batch["target"].const_data_ptr<std::int64_t>();
  auto* target = mixed.mutable_data_ptr<std::int64_t>();
  auto* shares = share.mutable_data_ptr<float>();
  std::copy_n(own, rows, target);
  std::fill_n(shares, rows, 1.0F);
  const bool whole = sampler_.global_size(ahead_.step) == options_.batch;
  slot.blocks.resize(static_cast<std::size_t>(whole ? rows / block : 0));
  if (!slot.unread) {
    slot.unread = std::make_unique<std::atomic<std::int64_t>[]>(
        static_cast<std::size_t>(options_.batch / options_.ranks / block));  // of a whole batch
  }
  for (std::size_t i = 0; i < slot.blocks.size(); ++i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * block;
    const std::int64_t place = (options_.rank * rows + first) / block;  // in the global batch
    const augment::BlockDraw& drawn = slot.blocks[i] =
        augment::draw(options_.mix, options_.policy.out_width, options_.policy.out_height,
                      {options_.seed, static_cast<std::uint32_t>(ahead_.epoch), static_cast<std::uint32_t>(ahead_.step),
                       static_cast<std::uint32_t>(place)});
    slot.unread[i].store(block, std::memory_order_relaxed);  // the pool's lock publishes it
    for (std::int64_t row = first; row < first + block; ++row) {
      target[row] = own[first + drawn.partner[static_cast<std::size_t>(row - first)]];
      shares[row] = drawn.own_share();
    }
  }
  slot.batch.set("target_mixed", mixed);
  slot.batch.set("share", share);
}

void ImageLoader::fill(std::int64_t ticket, std::int64_t row, int worker) {
  const Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  const auto bytes = static_cast<std::size_t>(reader_.row_bytes());
  reader_.read_row(slot.indices[static_cast<std::size_t>(row)], options_.seed, slot.epoch,
                   {slot.rows + static_cast<std::size_t>(row) * bytes, bytes},
                   workspaces_[static_cast<std::size_t>(worker)]);
  if (slot.blocks.empty()) {
    return;
  }
  const std::int64_t block = options_.mix.block, which = row / block;
  if (slot.unread[static_cast<std::size_t>(which)].fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const augment::Pixels first{slot.rows + static_cast<std::size_t>(which * block) * bytes, options_.policy.out_width,
                                options_.policy.out_height, options_.channels};
    augment::execute(slot.blocks[static_cast<std::size_t>(which)], first, mixing_[static_cast<std::size_t>(worker)]);
  }
}

std::optional<core::Batch> ImageLoader::next() {
  if (position_.step == steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  ++position_.step;
  std::int64_t ticket = 0;
  try {
    ticket = pool_.take();
  } catch (...) {
    submit_next();  // into the slot of the batch that failed
    throw;
  }
  core::Batch batch = std::move(slots_[static_cast<std::size_t>(ticket) % slots_.size()].batch);
  submit_next();
  return batch;
}

}  // namespace stoker::data
