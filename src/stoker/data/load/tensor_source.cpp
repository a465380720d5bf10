// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/tensor_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/data/order/equal_batches.h"
#include "stoker/data/order/sampler.h"

namespace stoker::data {
namespace {

TensorSourceOptions checked(TensorSourceOptions options) {
  if (options.fields.empty()) {
    fail<ConfigError>("data.tensor_source", "at least one field is needed");
  }
  const std::int64_t rows = options.fields.front().second.size(0);
  for (const auto& [name, tensor] : options.fields) {
    if (tensor.size(0) != rows) {
      fail<ConfigError>("data.tensor_source", "field \"{}\" has {} rows, but \"{}\" has {}", name, tensor.size(0),
                        options.fields.front().first, rows);
    }
  }
  if (!options.indices.empty() && static_cast<std::int64_t>(options.indices.size()) != rows) {
    fail<ConfigError>("data.tensor_source", "{} indices for {} rows", options.indices.size(), rows);
  }
  if (!options.order) {
    SamplerOptions sampler;
    sampler.samples = rows;
    sampler.batch = options.batch;
    sampler.seed = options.seed;
    sampler.shuffle = options.shuffle;
    sampler.drop_tail = options.drop_tail;
    sampler.rank = options.rank;
    sampler.ranks = options.ranks;
    options.order = std::make_shared<Sampler>(sampler);
  }
  if (options.order->samples() != rows) {
    fail<ConfigError>("data.tensor_source", "the order has {} samples, but the fields have {} rows",
                      options.order->samples(), rows);
  }
  return options;
}

}  // namespace

TensorSource::TensorSource(TensorSourceOptions options)
    : options_(checked(std::move(options))), position_(options_.start) {}

std::optional<core::Batch> TensorSource::next() {
  if (position_.step >= steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  options_.order->positions(position_.epoch, position_.step, rows_);
  const at::Tensor rows = at::empty({static_cast<std::int64_t>(rows_.size())}, at::kLong);
  std::ranges::copy(rows_, rows.mutable_data_ptr<std::int64_t>());
  std::vector<std::int64_t> indices = rows_;
  if (!options_.indices.empty()) {
    std::ranges::transform(rows_, indices.begin(),
                           [&](std::int64_t row) { return options_.indices[static_cast<std::size_t>(row)]; });
  }
  core::Batch batch(position_, std::move(indices));
  const std::int64_t global = options_.order->global_size(position_.epoch, position_.step);
  batch.set_part(slice_of_rank(0, global, options_.rank, options_.ranks).first, global);
  for (const auto& [name, tensor] : options_.fields) {
    batch.set(name, tensor.index_select(0, rows));
  }
  ++position_.step;
  return batch;
}

}  // namespace stoker::data
