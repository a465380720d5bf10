// SPDX-License-Identifier: Apache-2.0
// Stacks of a running Python program as py-spy samples them from outside: what its main thread does, and what the
// workers of its DataLoader do. Used by `stoker doctor --pid`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

struct StackSamples {
  std::map<std::string, std::int64_t> parts;  // of the main thread, by what it did: "fetch", "backward", "other"
  std::int64_t all = 0;                       // of the main thread
  int workers = 0;
  std::int64_t of_workers = 0, samples = 0, collate = 0;  // of all workers; of these, at a sample, and in collate
  std::vector<Site> sites;  // the script's own lines, of the main thread and of workers; most looks first

  void add(const StackSamples& later);
};

// The output of `py-spy record --format raw --threads --subprocesses --idle --full-filenames` of process `pid`. Lines
// that are no such output are left out.
[[nodiscard]] StackSamples read_stacks(std::istream& folded, int pid);

}  // namespace stoker::observe::doctor
