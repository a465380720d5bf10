// SPDX-License-Identifier: Apache-2.0
// The line worth watching: where the run stands, how the loss moves, how fast it goes and how long it takes. A sink of
// the EventBus; called on one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "stoker/core/events.h"

namespace stoker::io {

enum class ProgressMode {
  kTerminal,  // one line, redrawn at most each 0.1 s; evaluations and faults stay above it
  kPlain,     // a log file: a line at most each 10 s, and each evaluation, checkpoint, finding and fault
  kQuiet,     // findings, faults and the end
  kJson,      // every event as a JSON object a line
};

// What to say of how the data came.
struct FeedWords {
  std::string brief;     // beside the share of time waited: "JPEG decode"; may be empty
  std::string sentence;  // once, where it has to be told; empty: it has not
};

struct ProgressOptions {
  ProgressMode mode = ProgressMode::kPlain;
  std::ostream* out = nullptr;  // outlives the sink; required
  std::function<int()> width;   // columns of the terminal, asked at each redraw; 80 if not given
  bool utf8 = false;            // bars and arrows as Unicode block characters, else ASCII
  // Why data came late in a stretch of time; if not given, nothing is said about it.
  std::function<FeedWords(const core::Fed&)> explain;
  std::function<double()> clock;  // seconds, steady; now_s() if not given
};

// For standard output as it is: terminal or plain by isatty, width by ioctl (80 if it does not say), UTF-8 by the
// locale's variables.
[[nodiscard]] ProgressOptions progress_for_stdout();

class ProgressLine final : public core::EventSink {
 public:
  explicit ProgressLine(ProgressOptions options);
  // Leaves the cursor at the start of a fresh line. It is never hidden: a killed run would leave it so.
  ~ProgressLine() override;

  void on(const core::Event& event) override;
  void flush() override;
  [[nodiscard]] bool wants_every_step() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
