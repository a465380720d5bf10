// SPDX-License-Identifier: Apache-2.0
// Reads the traces that `stoker trace` was given, and says how they belong together. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/study/trace/report.h"

namespace stoker::study {

enum class TracesAre : std::uint8_t {
  kRanks,        // of one training, or a single trace
  kBeforeAfter,  // two traces of one program
  kUnsaid,       // two files are before and after, unless they tell that they are different ranks; others are ranks
};

struct OpenedTraces {
  Traces traces;
  bool comparison = false;               // two traces: before and after
  std::vector<std::string> passed_over;  // files of a folder or archive that could not be used, with the reason
};

// DataError as read_traces(); ConfigError if a comparison is asked for and there are not two traces. progress: the file
// and the bytes of JSON read of it so far.
[[nodiscard]] OpenedTraces open_traces(const std::vector<std::string>& paths, TracesAre how,
                                       const std::function<void(const std::string&, std::int64_t)>& progress);

}  // namespace stoker::study
