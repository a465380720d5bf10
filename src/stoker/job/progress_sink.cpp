// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/progress_sink.h"

#include "stoker/io/loggers/progress_line.h"

namespace stoker::job {

std::unique_ptr<core::EventSink> progress_sink(bool quiet, bool json) {
  io::ProgressOptions options = io::progress_for_stdout();
  if (json) {
    options.mode = io::ProgressMode::kJson;
  } else if (quiet) {
    options.mode = io::ProgressMode::kQuiet;
  }
  return std::make_unique<io::ProgressLine>(options);
}

}  // namespace stoker::job
