// SPDX-License-Identifier: Apache-2.0
// What a trained model says of pictures in files and folders. Used by `stoker predict`; one thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/job/loaded_model.h"

namespace stoker::job {

struct Guess {
  std::string label;
  double probability = 0;
};
struct Prediction {
  std::filesystem::path file;
  std::vector<Guess> guesses;  // most probable first; empty if the file could not be read
  std::string error;           // why it could not
};

struct FoundPictures {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> findings;  // what was passed over, in sentences for people
};
// The pictures among paths: files as given, folders searched through as training does it, hidden ones passed over.
// DataError for a path that does not exist, or if there is no picture at all.
[[nodiscard]] FoundPictures find_pictures(const std::vector<std::filesystem::path>& paths);

// Predicts in batches; each result is handed to take in order. top_k is cut to the number of classes.
void predict_files(LoadedModel& loaded, const std::vector<std::filesystem::path>& files, int top_k, std::int64_t batch,
                   const std::function<void(const Prediction&)>& take);

}  // namespace stoker::job
