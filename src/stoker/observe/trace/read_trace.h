// SPDX-License-Identifier: Apache-2.0
// Reads recorded traces of PyTorch programs: Kineto's and torch.profiler's Chrome traces, old and new, of CUDA, ROCm,
// other accelerators and CPUs. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

struct ReadOptions {
  std::size_t most_bytes = std::size_t{4} << 30;  // of memory for one trace
  // Called now and then with the bytes of JSON read so far.
  std::function<void(std::int64_t)> progress = {};
  // Called for each file of a folder or archive that is passed over, with the reason.
  std::function<void(const std::string&)> passed_over = {};
};

// path: a trace (.json, also compressed with gzip), a tar archive of traces (.tar, .tar.gz), or a folder of them.
// Several traces come in order of their ranks, then of their names. What is damaged is told in Trace::damage, if at
// least one event can be used. DataError that names the file: it cannot be read, is no trace, or none of PyTorch (then
// it says what it seems to be), or needs more than most_bytes.
[[nodiscard]] std::vector<Trace> read_traces(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace stoker::observe::trace
