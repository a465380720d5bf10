// SPDX-License-Identifier: Apache-2.0
// The progress line: position, loss and its trend, speed and time left. A sink of the EventBus; called on one thread at
// a time.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "stoker/core/events.h"

namespace stoker::io {

enum class ProgressMode {
  kTerminal,  // one line, redrawn at most every 0.1 s; evaluations and faults stay above it
  kPlain,     // a log file: a line at most every 10 s, and each evaluation, checkpoint, finding and fault
  kQuiet,     // findings, faults and the end
  kJson,      // every event as one JSON object per line
};

// What to report about waiting for data, or for a rank.
struct FeedWords {
  std::string brief;     // shown in the line: "JPEG decode", "slowest rank 3, data"; may be empty
  std::string sentence;  // printed once; empty: nothing to report
};

struct ProgressOptions {
  ProgressMode mode = ProgressMode::kPlain;
  std::ostream* out = nullptr;  // outlives the sink; required
  std::function<int()> width;   // columns of the terminal, called at each redraw; 80 if not set
  bool utf8 = false;            // bars and arrows as Unicode block characters, else ASCII
  // Explains why data was late in a window; if not set, nothing is reported.
  std::function<FeedWords(const core::Fed&)> explain;
  // Where the time of steps went, as lines for people; empty: nothing to show. If not set, nothing is shown.
  std::function<std::string(const core::Anatomy&)> where_time_went;
  // Which rank was slowest in a period, or lines about all steps; if not set, nothing is reported.
  std::function<FeedWords(const core::RankTimes&)> ranks;
  std::function<double()> clock;  // seconds, steady; now_s() if not set
};

// Options for standard output: terminal or plain by isatty, width by ioctl (80 if unknown), UTF-8 by the locale
// variables.
[[nodiscard]] ProgressOptions progress_for_stdout();

class ProgressLine final : public core::EventSink {
 public:
  explicit ProgressLine(ProgressOptions options);
  // Leaves the cursor at the start of a new line. The cursor is never hidden, since a killed run would leave it hidden.
  ~ProgressLine() override;

  void on(const core::Event& event) override;
  void flush() override;
  [[nodiscard]] bool wants_every_step() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
