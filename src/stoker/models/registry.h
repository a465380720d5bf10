// SPDX-License-Identifier: Apache-2.0
// The reference networks by name: one line of registry.cpp each. Called by tasks/ and by `stoker train model=...`.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/models/network.h"

namespace stoker::models {

struct ModelOptions {
  int classes = 10;
  int channels = 3;        // of the input: 1 grey, 3 colour
  int image_size = 32;     // height and width of training pictures, pixels
  std::uint64_t seed = 0;  // initial weights are a function of it
};

struct ModelInfo {
  std::string name;
  std::string text;  // one line for people: what it is and when to take it
};

// All of them, in the order in which help shows them.
[[nodiscard]] const std::vector<ModelInfo>& known_models();

// On the CPU, float32, in training mode. Input: floating [N, channels, H, W]; output: logits [N, classes].
// ConfigError with the nearest name for an unknown one, and for options that make no network.
[[nodiscard]] std::unique_ptr<Network> make_network(const std::string& name, const ModelOptions& options);

}  // namespace stoker::models
