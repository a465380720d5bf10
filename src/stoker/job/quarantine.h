// SPDX-License-Identifier: Apache-2.0
// quarantine.csv of a run folder: every sample that could not be had, once, with why and what stood in for it. Written
// as they are met, so that a killed run has named them, too. Used by Job::train; add() may be called from any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "stoker/core/bad_sample.h"

namespace stoker::job {

class Quarantine {
 public:
  // What an earlier part of the run has named stays. IoError if the file cannot be read.
  explicit Quarantine(const std::filesystem::path& run);

  // True if this sample is in it for the first time. IoError if the disk refuses.
  bool add(const core::BadSample& bad);

 private:
  std::filesystem::path path_;
  std::mutex mutex_;  // guards names_ and the file
  std::set<std::string> names_;
};

}  // namespace stoker::job
