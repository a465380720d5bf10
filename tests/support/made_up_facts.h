// SPDX-License-Identifier: Apache-2.0
// The inputs of a plan, for tests of plans: facts about a small image set, and the options of a user.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "stoker/train/resolve.h"

namespace stoker::testing {

inline train::Facts facts_of(std::int64_t samples, int cores = 2) {
  train::Facts facts;
  facts.train_samples = samples;
  facts.cores = cores;
  facts.task = "image_classification";
  const auto option = [](std::string key, core::OptionType type) {
    return core::Option{
        .key = std::move(key), .type = std::move(type), .fallback = core::depends("by the recipe"), .help = ""};
  };
  facts.task_options = {option("image_size", core::Whole{8, 1024}), option("augment", core::Text{"a name"}),
                        option("label_smoothing", core::Real{0, 1})};
  for (const auto& [key, value] : std::map<std::string, std::string>{{"model", "cnn"},
                                                                     {"image_size", "32"},
                                                                     {"augment", "none"},
                                                                     {"epochs", "10"},
                                                                     {"batch", "64"},
                                                                     {"optimizer", "sgd"},
                                                                     {"lr", "0.1"},
                                                                     {"lr_batch", "128"},
                                                                     {"weight_decay", "0.001"},
                                                                     {"schedule", "cosine"},
                                                                     {"warmup", "0.1"},
                                                                     {"label_smoothing", "0"}}) {
    facts.recipe.push_back({key, value, core::Origin::kDefault, "by the recipe"});
  }
  return facts;
}

inline train::Options asked(std::initializer_list<const char*> words) {
  train::Options options;
  for (const char* word : words) {
    options.set_assignment(word);
  }
  return options;
}

}  // namespace stoker::testing
