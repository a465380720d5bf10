// SPDX-License-Identifier: Apache-2.0
// Initial weights as a function of only (seed, parameter name, element): the same on every machine with the same libm,
// independent of the rest of the network and of the order of its creation. Called by NetworkBuilder. Thread-safe: no
// state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace stoker::models {

// Fills a float32 CPU tensor with uniform numbers in [-bound, bound).
void fill_uniform(at::Tensor tensor, double bound, std::uint64_t seed, std::string_view name);
// Fills a float32 CPU tensor with normal numbers of mean 0 (Box and Muller, 1958, from Philox's uniform numbers).
void fill_normal(at::Tensor tensor, double deviation, std::uint64_t seed, std::string_view name);

}  // namespace stoker::models
