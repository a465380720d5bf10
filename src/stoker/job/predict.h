// SPDX-License-Identifier: Apache-2.0
// Predictions of a trained model for files without labels. Used by `stoker predict`; one thread at a time.
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
  std::optional<double> value;  // instead of guesses, if a model predicts numbers
};

// The samples at paths that the model can predict for. DataError if there are none; ConfigError for a kind of model
// that cannot predict from files.
[[nodiscard]] std::unique_ptr<tasks::UnlabelledSource> open_unlabelled(const LoadedModel& loaded,
                                                                       const std::vector<std::filesystem::path>& paths);

// Predicts in batches; passes each result to take in order, on the caller's thread. A separate thread reads the source,
// one or two batches ahead; operators leave a core for it. top_k is limited to the number of classes.
void predict(LoadedModel& loaded, tasks::UnlabelledSource& source, int top_k, std::int64_t batch,
             const std::function<void(const Prediction&)>& take);

}  // namespace stoker::job
