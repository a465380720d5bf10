// SPDX-License-Identifier: Apache-2.0
// The networks by name: one line of registry.cpp per reference network, and the networks that a program adds. Called by
// tasks/ and by `stoker train model=...`. Thread-safe, except for add_model().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/models/network.h"

namespace stoker::models {

struct ModelOptions {
  int classes = 10;
  int channels = 3;        // of the input: 1 grey, 3 colour
  int image_size = 32;     // height and width of training images, pixels
  std::uint64_t seed = 0;  // initial weights are a function of it
  // Convolutions before a batch norm keep a bias, which the norm cancels: only for measuring its cost.
  bool conv_bias = false;
  // After the convolutions. ConfigError for kGroup by a network without norms; an added network must do the same.
  ConvNorm norm = ConvNorm::kBatch;
};

struct ModelInfo {
  std::string name;
  std::string text;  // one line for people: what it is and when to use it
  // The same network with more channels, which reaches a better result if there is time for it; empty: there is none.
  std::string wider = {};
};

// All of them, in the order in which help shows them.
[[nodiscard]] const std::vector<ModelInfo>& known_models();

// ModelInfo::wider of the model with this name; also empty for an unknown name.
[[nodiscard]] std::string wider_model(const std::string& name);
// Whether wider_model() leads from `first` to `name`, in zero or more steps.
[[nodiscard]] bool is_width_of(const std::string& first, const std::string& name);

// Adds a program's own network for images. From here on it is used like the reference ones: `model=NAME` trains it, and
// its checkpoints load in every program that adds it. make: as make_network(). On one thread, before the first request.
// ConfigError for a name that is in use or empty.
void add_model(ModelInfo info, std::function<std::unique_ptr<Network>(const ModelOptions&)> make);

// On the CPU, float32, in training mode. Input: floating [N, channels, H, W]; output: logits [N, classes]. ConfigError
// with the nearest name for an unknown one, and for invalid options.
[[nodiscard]] std::unique_ptr<Network> make_network(const std::string& name, const ModelOptions& options);

}  // namespace stoker::models
