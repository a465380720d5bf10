// SPDX-License-Identifier: Apache-2.0
// quarantine.csv of a run folder: every sample that could not be read, once, with why and what stood in for it. Written
// as they are met, so that a killed run has named them, too. It is a list for people: a disk that refuses it is said
// once and ends nothing. Used by Job::train; add() may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "stoker/core/bad_sample.h"
#include "stoker/job/request.h"

namespace stoker::job {

class Quarantine {
 public:
  // What an earlier part of the run has named stays, but for a last row that was not wholly written. say is told once
  // what cannot be read, and once what cannot be written; it may be called from any thread.
  Quarantine(const std::filesystem::path& run, Say say);

  // True if this sample is in it for the first time.
  bool add(const core::BadSample& bad);

 private:
  void read();
  void append(const std::string& row);

  std::filesystem::path path_;
  Say say_;
  std::mutex mutex_;  // guards the rest and the file
  std::set<std::string> names_;
  std::uintmax_t whole_ = 0;  // bytes of the file that are whole rows
  bool refused_ = false;      // the disk, and that was said
};

}  // namespace stoker::job
