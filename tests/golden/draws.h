// SPDX-License-Identifier: Apache-2.0
// Inputs and weights of the goldens as functions of only (seed, name, element), so that no file needs to store them.
// draws.py is the same in Python. Used by the tests in this folder.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/base/philox.h"

namespace stoker::golden {

constexpr std::uint32_t kSeed = 2026;

// FNV-1a, 64 bits.
constexpr std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

// Calls take(i, 32 random bits of this name) for i in 0 ... count-1.
template <typename Take>
void each_word(std::string_view name, std::int64_t count, Take take) {
  const std::uint64_t hash = name_hash(name);
  for (std::int64_t i = 0; i < count; i += 4) {
    const PhiloxBlock words = philox4x32({static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(hash),
                                          0x80000000, static_cast<std::uint32_t>(hash >> 32)},
                                         {kSeed, 0});
    for (std::int64_t k = 0; k < std::min<std::int64_t>(4, count - i); ++k) {
      take(i + k, words[static_cast<std::size_t>(k)]);
    }
  }
}

// float64 values that float32 can represent, so that networks of both types have equal weights.
inline at::Tensor uniform(std::string_view name, at::IntArrayRef shape, double low, double high) {
  at::Tensor values = at::empty(shape, at::kDouble);
  each_word(name, values.numel(), [&, data = values.data_ptr<double>()](std::int64_t i, std::uint32_t bits) {
    data[i] = static_cast<float>(low + (high - low) * (static_cast<double>(bits >> 8) * 0x1p-24));
  });
  return values;
}

// int64 in 0 ... n-1.
inline at::Tensor below(std::string_view name, at::IntArrayRef shape, std::int64_t n) {
  at::Tensor values = at::empty(shape, at::kLong);
  each_word(name, values.numel(), [&, data = values.data_ptr<std::int64_t>()](std::int64_t i, std::uint32_t bits) {
    data[i] = static_cast<std::int64_t>((std::uint64_t{bits} * static_cast<std::uint64_t>(n)) >> 32);
  });
  return values;
}

// Initial values of the network's tensor of this name: matrices by their fan-in, norms near 1 and 0.
inline at::Tensor weight(std::string_view name, at::IntArrayRef shape) {
  if (shape.size() > 1) {
    std::int64_t fan_in = 1;
    for (const std::int64_t size : shape.slice(1)) {
      fan_in *= size;
    }
    const double bound = std::sqrt(6 / static_cast<double>(fan_in));
    return uniform(name, shape, -bound, bound);
  }
  const bool near_one = name.ends_with("weight") || name.ends_with("running_var");
  return near_one ? uniform(name, shape, 0.5, 1.5) : uniform(name, shape, -0.25, 0.25);
}

// The stored part of a large tensor: its norm, its largest magnitude, and four elements.
inline at::Tensor sample(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).flatten();
  const at::Tensor ends = at::stack({flat.norm(), flat.abs().max()});
  return at::cat({ends, flat.index_select(0, below("at " + name, {4}, flat.numel()))});
}

}  // namespace stoker::golden
