// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/event_json.h"
#include "stoker/io/loggers/progress_figures.h"

namespace stoker::io {
namespace {

using namespace core;

// Seconds between redraws of the terminal line. If steps take longer, flush() draws after kQuietSeconds. Both must be
// equal, or the longer one would have no effect.
constexpr double kRedraw = core::kQuietSeconds;
constexpr double kPlainLine = 10;     // seconds between step lines of a log file
constexpr double kFedAgain = 300;     // seconds until the same sentence about late data or a rank is repeated
constexpr int kNoTerminalWidth = 80;  // columns
constexpr int kUnlimited = 10'000;    // a log file has no right margin

int terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kNoTerminalWidth;
}

// The first of these that is set decides (POSIX, "Internationalization Variables").
bool locale_is_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      std::string name(value);
      for (char& c : name) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
      return name.find("utf-8") != name.npos || name.find("utf8") != name.npos;
    }
  }
  return false;
}

std::string start_text(const RunStarted& run) {
  std::string text = printable(run.title);
  if (run.steps_per_epoch > 0) {
    text += fmt::format(": {} of {}", counted(run.epochs, "epoch"), counted(run.steps_per_epoch, "step"));
  }
  if (run.first_step > 0) {
    text += fmt::format(", continuing after step {}", run.first_step);
  }
  return run.folder.empty() ? text : text + ", in " + printable(run.folder);
}

std::string end_text(const RunFinished& end) {
  const std::string text = end.text.empty() ? "" : ": " + printable(end.text);
  const std::string outcome = end.outcome == "early_stop" ? "ended early: validation no longer improves"
                              : end.outcome == "time_up"  ? "ended at its time limit"
                                                          : printable(end.outcome);
  return fmt::format("{}{} ({})", outcome, text, duration_text(end.seconds));
}

}  // namespace

ProgressOptions progress_for_stdout() {
  const char* terminal = std::getenv("TERM");
  const bool can_redraw = ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  ProgressOptions options;
  options.mode = can_redraw ? ProgressMode::kTerminal : ProgressMode::kPlain;
  options.out = &std::cout;
  options.width = terminal_width;
  options.utf8 = locale_is_utf8();
  return options;
}

struct ProgressLine::State {
  [[nodiscard]] double now() const { return options.clock ? options.clock() : now_s(); }
  [[nodiscard]] int width() const { return options.width ? options.width() : kNoTerminalWidth; }
  [[nodiscard]] bool plain() const { return options.mode == ProgressMode::kPlain; }
  [[nodiscard]] bool quiet() const { return options.mode == ProgressMode::kQuiet; }

  // A permanent line; the progress line is drawn again below it.
  void say(const std::string& text) {
    *options.out << (drawn ? "\r\x1b[K" : "") << text << '\n';
    const bool again = std::exchange(drawn, false);
    if (again) {
      draw();
    }
    options.out->flush();
  }
  void draw() {
    // One column stays free: some terminals wrap if the last column is used.
    *options.out << '\r' << figures.line({width() - 1, options.utf8, true}) << "\x1b[K" << std::flush;
    drawn = true;
    stale = false;
    shown_at = now();
  }
  // Shows the current line if it is due.
  void show() {
    const double interval = plain() ? kPlainLine : kRedraw;
    stale = true;
    if (quiet() || (shown_at && now() - *shown_at < interval)) {
      return;
    }
    if (plain()) {
      shown_at = now();
      say(figures.line({kUnlimited, options.utf8, false}));
    } else {
      draw();
    }
  }
  void clear() {
    if (std::exchange(drawn, false)) {
      *options.out << "\r\x1b[K" << std::flush;
    }
    stale = false;
  }

  struct Blamed {
    std::string brief;  // in the last sentence
    std::optional<double> at;
  };
  // Prints the sentence once per brief word, and again after kFedAgain.
  void say_once(const FeedWords& words, Blamed& last) {
    if (!words.sentence.empty() && !quiet() &&
        (words.brief != last.brief || !last.at || now() - *last.at >= kFedAgain)) {
      last = {words.brief, now()};
      say(words.sentence);
    }
  }

  void on(const RunStarted& event) {
    figures.start(event);
    steps_per_epoch = event.steps_per_epoch;
    if (!quiet()) {
      say(start_text(event));
    }
  }
  void on(const StepFinished& event) {
    figures.step(event);
    show();
  }
  void on(const Fed& event) {
    const FeedWords words = options.explain ? options.explain(event) : FeedWords{};
    figures.fed(words.brief);
    say_once(words, late_data);
  }
  void on(const RankTimes& event) {
    const FeedWords words = options.ranks ? options.ranks(event) : FeedWords{};
    if (event.whole) {
      if (!words.sentence.empty() && !quiet()) {
        say(words.sentence);
      }
      return;
    }
    figures.ranks(words.brief);
    say_once(words, slow_rank);
  }
  void on(const Evaluating& event) {
    figures.evaluating(event);
    show();
  }
  void on(const Evaluated& event) {
    figures.evaluated(event);
    if (!quiet()) {
      say(evaluation_text(event, steps_per_epoch));
    }
  }
  void on(const CheckpointSaved& event) {
    if (plain()) {  // on a terminal the line of the evaluation is enough
      say(fmt::format("saved the {} checkpoint of step {}: {}", printable(event.kind), event.step,
                      printable(event.path)));
    }
  }
  void on(const FaultSurvived& event) {
    say(fmt::format("warning: step {}: {} ({})", event.step, printable(event.text), printable(event.kind)));
  }
  void on(const Finding& event) { say("note: " + printable(event.text)); }
  void on(const Artifact& event) {
    if (plain()) {
      say(fmt::format("wrote {}: {}", printable(event.name), printable(event.path)));
    }
  }
  void on(const WeightHistograms&) {}
  void on(const Monitored&) {}
  void on(const Anatomy& event) {
    const std::string text = options.where_time_went ? options.where_time_went(event) : "";
    if (!text.empty() && !quiet()) {
      say(text);
    }
  }
  void on(const SlowStep&) {}
  void on(const RunFinished& event) {
    clear();
    say(end_text(event));
  }

  ProgressOptions options;
  ProgressFigures figures;
  std::vector<std::string> scalars;
  std::int64_t steps_per_epoch = 0;
  bool drawn = false;              // the progress line is on the screen
  bool stale = false;              // there were steps since it was drawn
  std::optional<double> shown_at;  // when the last step line was shown
  Blamed late_data, slow_rank;
};

ProgressLine::ProgressLine(ProgressOptions options) : state_(std::make_unique<State>()) {
  if (options.out == nullptr) {
    fail<ConfigError>("io.progress", "needs an output stream");
  }
  state_->options = std::move(options);
}

ProgressLine::~ProgressLine() {
  if (state_->drawn) {
    *state_->options.out << '\n' << std::flush;
  }
}

void ProgressLine::on(const Event& event) {
  if (state_->options.mode != ProgressMode::kJson) {
    std::visit([this](const auto& each) { state_->on(each); }, event);
    return;
  }
  if (const auto* start = std::get_if<RunStarted>(&event)) {
    state_->scalars = start->scalars;
  }
  *state_->options.out << event_json(event, state_->scalars) << '\n' << std::flush;
}

void ProgressLine::flush() {
  if (state_->options.mode == ProgressMode::kTerminal && state_->drawn && state_->stale) {
    state_->draw();
  }
}

bool ProgressLine::wants_every_step() const { return state_->options.mode == ProgressMode::kJson; }

}  // namespace stoker::io
