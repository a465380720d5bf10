// SPDX-License-Identifier: Apache-2.0
// What a trained model says: metrics on a split, and predictions for files and folders. Used by `stoker eval` and
// `stoker predict`; one thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/job/loaded_model.h"
#include "stoker/tasks/metrics/classification.h"

namespace stoker::job {

struct SplitReport {
  std::string split;
  std::int64_t samples = 0;
  std::vector<core::MetricValue> metrics;
  std::vector<tasks::ClassRow> classes;
};

// Metrics of the model on a split ("train", "val", "test") of data; "all" takes class folders as one set. Labels go by
// class name: DataError for a class that the model does not know. val and seed cut a validation split as training did.
[[nodiscard]] SplitReport evaluate_split(LoadedModel& loaded, const std::filesystem::path& data, const std::string& split,
                                         double val, std::uint64_t seed, std::int64_t batch);

struct Guess {
  std::string label;
  double probability = 0;
};
struct Prediction {
  std::filesystem::path file;
  std::vector<Guess> guesses;  // most probable first; empty if the file could not be read
  std::string error;           // why it could not
};

// The pictures among paths: files as given, folders searched through for .jpg, .jpeg and .png, sorted.
// DataError for a path that does not exist, or if there is no picture at all.
[[nodiscard]] std::vector<std::filesystem::path> find_pictures(const std::vector<std::filesystem::path>& paths);

// Predicts in batches; each result is handed to take in order. top_k is cut to the number of classes.
void predict_files(LoadedModel& loaded, const std::vector<std::filesystem::path>& files, int top_k, std::int64_t batch,
                   const std::function<void(const Prediction&)>& take);

}  // namespace stoker::job
