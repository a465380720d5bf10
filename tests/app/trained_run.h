// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the command line: a tiny data set and one run trained on it, made once by the first test that
// needs it, and settings for quick runs. For one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/stoker_process.h"
#include "support/image_set.h"

namespace stoker::testing {

namespace fs = std::filesystem;

inline constexpr int kDone = 0, kUsage = 2, kDataError = 65, kDeviceError = 71, kIoError = 74, kStopped = 75;

// For a run of about one second, most of it spent starting torch.
inline const Words kQuick = {"model=mlp", "epochs=1", "batch=8", "precision=fp32", "threads=0", "intra_op=1"};

inline std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string weights_of(const fs::path& run, const std::string& checkpoint = "last") {
  return read_bytes(run / "checkpoints" / checkpoint / "weights.safetensors");
}

inline Words lines_of(const std::string& text) {
  Words lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// A folder with data/{train,val,test}, where each of 3 classes has 8, 3 and 3 images, and runs/base trained on it.
class TrainedRun {
 public:
  TrainedRun() {
    write_striped_set(folder_, "data/train/", 8);
    write_striped_set(folder_, "data/val/", 3, 100);
    write_striped_set(folder_, "data/test/", 3, 200);
    trained_ = run_stoker(Words{"train", "data", "run=base"} + kQuick, folder_.path());
    if (trained_.code != kDone) {
      ADD_FAILURE() << "the run that other tests need failed with " << trained_.code << ": " << trained_.all();
    }
  }
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }
  [[nodiscard]] fs::path data() const { return folder_ / "data"; }
  [[nodiscard]] fs::path run() const { return folder_ / "runs/base"; }
  [[nodiscard]] const Finished& trained() const { return trained_; }

 private:
  TempFolder folder_;
  Finished trained_;
};

inline std::unique_ptr<TrainedRun>& trained_run_slot() {
  static std::unique_ptr<TrainedRun> slot;
  return slot;
}

inline const TrainedRun& trained_run() {
  if (!trained_run_slot()) {
    trained_run_slot() = std::make_unique<TrainedRun>();
  }
  return *trained_run_slot();
}

}  // namespace stoker::testing
