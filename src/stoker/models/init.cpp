// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/init.h"

#include <cmath>
#include <numbers>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::models {
namespace {

// FNV-1a, 64 bits (Fowler, Noll, Vo): spreads names over Philox's counters.
std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

// Calls fill(values, count, four 32-bit draws) for every four elements.
template <typename Fill>
void for_each_block(at::Tensor& tensor, std::uint64_t seed, std::string_view name, Fill fill) {
  if (tensor.scalar_type() != at::kFloat || !tensor.is_cpu() || !tensor.is_contiguous()) {
    fail<ConfigError>("models.init", "\"{}\" must be contiguous float32 on the CPU, got {}", name,
                      core::describe(tensor));
  }
  const std::uint64_t hash = name_hash(name);
  const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  auto* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); i += 4) {
    // The operation has the same place as in CounterRng, so no other consumer of the seed uses these counters.
    const PhiloxBlock counter{static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(hash),
                              static_cast<std::uint32_t>(RandomOp::kInit) << 16,
                              static_cast<std::uint32_t>(hash >> 32)};
    fill(values + i, std::min<std::int64_t>(4, tensor.numel() - i), philox4x32(counter, key));
  }
}

// Uniform in [0, 1), exact in float32.
float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace

void fill_uniform(at::Tensor tensor, double bound, std::uint64_t seed, std::string_view name) {
  const auto width = static_cast<float>(bound);
  for_each_block(tensor, seed, name, [&](float* values, std::int64_t count, const PhiloxBlock& bits) {
    for (std::int64_t k = 0; k < count; ++k) {
      values[k] = width * (2 * unit(bits[k]) - 1);
    }
  });
}

void fill_normal(at::Tensor tensor, double deviation, std::uint64_t seed, std::string_view name) {
  const auto scale = static_cast<float>(deviation);
  for_each_block(tensor, seed, name, [&](float* values, std::int64_t count, const PhiloxBlock& bits) {
    std::array<float, 4> normal{};
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const float radius = scale * std::sqrt(-2 * std::log(1 - unit(bits[pair])));  // of a number in (0, 1]
      const float angle = 2 * std::numbers::pi_v<float> * unit(bits[pair + 1]);
      normal[pair] = radius * std::cos(angle);
      normal[pair + 1] = radius * std::sin(angle);
    }
    std::copy_n(normal.begin(), count, values);
  });
}

}  // namespace stoker::models
