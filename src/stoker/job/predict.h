// SPDX-License-Identifier: Apache-2.0
// What a trained model says of files without labels. Used by `stoker predict`; one thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/job/loaded_model.h"

namespace stoker::job {

struct Guess {
  std::string label;
  double probability = 0;
};
struct Prediction {
  tasks::UnlabelledSample sample;
  std::vector<Guess> guesses;   // most probable first; empty if the sample could not be read
  std::optional<double> value;  // in place of guesses, where a model predicts numbers
};

// What the model can predict for among paths. DataError if there is nothing; ConfigError for a kind of model that
// predicts nothing from files.
[[nodiscard]] std::unique_ptr<tasks::UnlabelledSource> open_unlabelled(const LoadedModel& loaded,
                                                                       const std::vector<std::filesystem::path>& paths);

// Predicts in batches; each result is handed to take in order, on the caller's thread. The source is read by a thread
// of its own, a batch or two ahead, to which operators leave a core. top_k is cut to the number of classes.
void predict(LoadedModel& loaded, tasks::UnlabelledSource& source, int top_k, std::int64_t batch,
             const std::function<void(const Prediction&)>& take);

}  // namespace stoker::job
