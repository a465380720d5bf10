// SPDX-License-Identifier: Apache-2.0
// The networks by name: the reference ones, one line of registry.cpp each, and those that a program adds. Called by
// tasks/ and by `stoker train model=...`. Thread-safe, but for add_model().
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
  // Convolutions in front of a batch norm keep a bias, which the norm takes away again: there to measure what that
  // costs.
  bool conv_bias = false;
};

struct ModelInfo {
  std::string name;
  std::string text;  // one line for people: what it is and when to take it
  // The same network with more channels, which learns more where there is time for it; empty: there is none.
  std::string wider = {};
};

// All of them, in the order in which help shows them.
[[nodiscard]] const std::vector<ModelInfo>& known_models();

// ModelInfo::wider of a model of that name; empty, too, where there is none of that name.
[[nodiscard]] std::string wider_model(const std::string& name);
// Whether wider_model() leads from `first` to `name`, in no step or in some.
[[nodiscard]] bool is_width_of(const std::string& first, const std::string& name);

// A program's own network for images, from here on known like the reference ones: `model=NAME` trains it, and its
// checkpoints load in every program that adds it. make: as make_network(). On one thread, before the first request.
// ConfigError for a name that is taken or empty.
void add_model(ModelInfo info, std::function<std::unique_ptr<Network>(const ModelOptions&)> make);

// On the CPU, float32, in training mode. Input: floating [N, channels, H, W]; output: logits [N, classes].
// ConfigError with the nearest name for an unknown one, and for options that make no network.
[[nodiscard]] std::unique_ptr<Network> make_network(const std::string& name, const ModelOptions& options);

}  // namespace stoker::models
