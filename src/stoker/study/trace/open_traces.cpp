// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/trace/open_traces.h"

#include "stoker/base/error.h"
#include "stoker/observe/trace/read_trace.h"

namespace stoker::study {

OpenedTraces open_traces(const std::vector<std::string>& paths, TracesAre how,
                         const std::function<void(const std::string&, std::int64_t)>& progress) {
  OpenedTraces opened;
  for (const std::string& path : paths) {
    const observe::trace::ReadOptions options{
        .progress = [&](std::int64_t bytes) { progress(path, bytes); },
        .passed_over = [&](const std::string& reason) { opened.passed_over.push_back(reason); }};
    for (observe::trace::Trace& trace : observe::trace::read_traces(path, options)) {
      opened.traces.push_back(std::make_unique<observe::trace::TraceFacts>(std::move(trace)));
    }
  }
  const bool two = paths.size() == 2 && opened.traces.size() == 2;
  if (how == TracesAre::kBeforeAfter && !two) {
    fail<ConfigError>("stoker.trace",
                      "a comparison needs two traces, got {} in {} files; give the files before and after",
                      opened.traces.size(), paths.size());
  }
  const auto rank = [&](std::size_t i) { return opened.traces[i]->trace.rank; };
  const bool different_ranks = two && rank(0) >= 0 && rank(1) >= 0 && rank(0) != rank(1);
  opened.comparison = two && (how == TracesAre::kBeforeAfter || (how == TracesAre::kUnsaid && !different_ranks));
  return opened;
}

}  // namespace stoker::study
