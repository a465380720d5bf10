// SPDX-License-Identifier: Apache-2.0
// quarantine.csv of a run folder: every unreadable sample, once, with the reason and its replacement. Rows are written
// when the samples are found, so that a killed run has them too. It is a list for people: if the disk fails, it is
// reported once and ends nothing. Used by Job::train; add() may be called from any thread.
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
  // Keeps the rows of earlier sessions, except for an incomplete last row. say is called once if it cannot be read, and
  // once if it cannot be written; from any thread.
  Quarantine(const std::filesystem::path& run, Say say);

  // True if this sample is new in the list.
  bool add(const core::BadSample& bad);

 private:
  void read();
  void append(const std::string& row);

  std::filesystem::path path_;
  Say say_;
  std::mutex mutex_;  // guards the rest and the file
  std::set<std::string> names_;
  std::uintmax_t whole_ = 0;  // bytes of the file that are whole rows
  bool refused_ = false;      // a write failed, and it was reported
};

}  // namespace stoker::job
