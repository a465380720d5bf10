// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/progress_sink.h"

#include "stoker/io/loggers/progress_line.h"
#include "stoker/observe/anatomy/where_time_went.h"
#include "stoker/observe/feeding.h"
#include "stoker/observe/straggler.h"

namespace stoker::job {
namespace {

io::FeedWords explain(const core::Fed& fed) {
  const observe::Feeding feeding = observe::explain(fed);
  return feeding.late && !feeding.stage.empty() ? io::FeedWords{feeding.stage, feeding.words} : io::FeedWords{};
}

}  // namespace

std::unique_ptr<core::EventSink> progress_sink(bool quiet, bool json) {
  io::ProgressOptions options = io::progress_for_stdout();
  options.explain = explain;
  options.where_time_went = [utf8 = options.utf8, went = observe::WhereTimeWent()](const core::Anatomy& event) mutable {
    if (event.whole) {
      return went.text(event, utf8);
    }
    went.add(event);
    return std::string();
  };
  options.ranks = [watch = observe::StragglerWatch()](const core::RankTimes& event) mutable {
    if (event.whole) {
      return io::FeedWords{"", observe::ranks_text(event)};
    }
    const observe::Straggler slowest = watch.look(event);
    return io::FeedWords{slowest.brief, slowest.words};
  };
  if (json) {
    options.mode = io::ProgressMode::kJson;
  } else if (quiet) {
    options.mode = io::ProgressMode::kQuiet;
  }
  return std::make_unique<io::ProgressLine>(options);
}

}  // namespace stoker::job
