// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/progress_figures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/plain_nan.h"

namespace stoker::io {
namespace {

constexpr double kFast = 0.1,
                 kSlow = 0.02;    // weight of a new loss; the trend compares the fast mean with the slow one
constexpr double kFlat = 0.005;   // a smaller relative difference is not a trend
constexpr double kForget = 0.98;  // factor for the sums, per step
constexpr int kBar = 16;          // columns

// A part of the line; parts with a higher rank are left out first.
struct Piece {
  std::string text;
  int rank;
};

int columns(std::string_view text) {  // every character that we draw is one column wide
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string joined(std::vector<Piece> pieces, int width) {
  std::erase_if(pieces, [](const Piece& piece) { return piece.text.empty(); });
  while (true) {
    std::string line;
    for (const Piece& piece : pieces) {
      line += (line.empty() ? "" : "  ") + piece.text;
    }
    if (columns(line) <= width || pieces.size() <= 1) {
      return line;
    }
    pieces.erase(std::ranges::max_element(pieces, {}, &Piece::rank));
  }
}

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < 0               ? ""
         : bytes < 1'000'000'000 ? fmt::format("{:.0f} MB", value / 1e6)
                                 : fmt::format("{:.1f} GB", value / 1e9);
}

std::string rate_text(double rate) {
  return rate < 100 ? fmt::format("{:.1f}/s", rate) : fmt::format("{:.0f}/s", rate);
}

}  // namespace

void ProgressFigures::start(const core::RunStarted& run) {
  *this = ProgressFigures();
  run_ = run;
}

void ProgressFigures::step(const core::StepFinished& step) {
  last_ = step;
  evaluating_.clear();
  const core::Scalars scalars = step.scalars ? step.scalars->read() : core::Scalars{};
  loss_ = scalars.count > 0 ? std::optional(scalars.values[0]) : std::nullopt;
  if (loss_ && std::isfinite(*loss_)) {
    fast_ += kFast * (*loss_ - fast_);
    slow_ += kSlow * (*loss_ - slow_);
    fast_weight_ += kFast * (1 - fast_weight_);  // weight of real values, as the mean starts at 0
    slow_weight_ += kSlow * (1 - slow_weight_);
  }
  steps_ = steps_ * kForget + 1;
  samples_ = samples_ * kForget + static_cast<double>(step.samples);
  seconds_ = seconds_ * kForget + step.seconds;
  waited_ = waited_ * kForget + step.data_wait_seconds;
}

void ProgressFigures::evaluating(const core::Evaluating& evaluating) {
  const std::int64_t percent = evaluating.samples > 0 ? 100 * evaluating.done / evaluating.samples : 0;
  evaluating_ = fmt::format("{} {} %", evaluating.split == "val" ? "validating" : "testing", percent);
}

void ProgressFigures::evaluated(const core::Evaluated& evaluated) {
  evaluating_.clear();
  if (!evaluated.metrics.empty()) {
    const core::MetricValue& first = evaluated.metrics.front();
    metric_ = fmt::format("{} {} {:.4g}", printable(evaluated.split), printable(first.name), plain_nan(first.value));
  }
}

std::int64_t ProgressFigures::step_in_epoch() const {
  return run_.steps_per_epoch > 0 ? (last_.step - 1) % run_.steps_per_epoch + 1 : last_.step;
}

std::string ProgressFigures::bar(bool utf8) const {
  if (run_.steps_per_epoch <= 0) {
    return "";
  }
  const auto full = static_cast<int>(std::clamp<std::int64_t>(kBar * step_in_epoch() / run_.steps_per_epoch, 0, kBar));
  std::string text = utf8 ? "" : "[";
  for (int i = 0; i < kBar; ++i) {
    text += i < full ? (utf8 ? "━" : "=") : (utf8 ? "─" : "-");
  }
  return utf8 ? text : text + "]";
}

// The smoothed loss. A loss that is not finite is shown unchanged, never averaged away.
std::string ProgressFigures::loss(bool utf8) const {
  if (!loss_) {
    return "";
  }
  if (!std::isfinite(*loss_) || fast_weight_ == 0) {
    return fmt::format("loss {}", plain_nan(*loss_));
  }
  const double fast = fast_ / fast_weight_;
  const double slow = slow_ / slow_weight_;
  const double margin = kFlat * std::abs(slow);
  const std::string_view trend = fast < slow - margin   ? (utf8 ? "↓" : "v")
                                 : fast > slow + margin ? (utf8 ? "↑" : "^")
                                                        : (utf8 ? "→" : "=");
  return fmt::format("loss {:.4g} {}", fast, trend);
}

std::string ProgressFigures::line(const ProgressStyle& style) const {
  if (last_.step == 0) {
    return evaluating_;
  }
  const bool known = run_.steps_per_epoch > 0;
  const std::int64_t epoch = known ? (last_.step - 1) / run_.steps_per_epoch + 1 : last_.position.epoch + 1;
  const double left = static_cast<double>(run_.last_step - last_.step) * seconds_ / steps_;
  return joined(
      {{run_.epochs > 0 ? fmt::format("epoch {}/{}", epoch, run_.epochs) : fmt::format("epoch {}", epoch), 1},
       {style.bar ? bar(style.utf8) : "", 6},
       {known ? fmt::format("{}/{}", step_in_epoch(), run_.steps_per_epoch) : fmt::format("step {}", last_.step), 2},
       {evaluating_, 0},
       {loss(style.utf8), 0},
       {metric_, 5},
       {fmt::format("lr {:.3g}", last_.lr), 8},
       {seconds_ > 0 ? rate_text(samples_ / seconds_) : "", 4},
       {bytes_text(last_.memory_bytes), 9},
       {seconds_ > 0 ? fmt::format("wait {:.0f}%{}", 100 * waited_ / seconds_, late_.empty() ? "" : " " + late_) : "",
        7},
       {ranks_, 6},
       {run_.last_step > 0 && evaluating_.empty() ? duration_text(left) + " left" : "", 3}},
      style.width);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) {
    return "?";
  }
  const auto whole = static_cast<std::int64_t>(std::clamp(std::round(seconds), 0.0, 3.6e8));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest) : fmt::format("{}:{:02}", minutes, rest);
}

std::string evaluation_text(const core::Evaluated& evaluated, std::int64_t steps_per_epoch) {
  std::string text = steps_per_epoch > 0 && evaluated.step % steps_per_epoch == 0
                         ? fmt::format("epoch {}: ", evaluated.step / steps_per_epoch)
                         : fmt::format("step {}: ", evaluated.step);
  text += printable(evaluated.split);
  for (std::size_t i = 0; i < evaluated.metrics.size(); ++i) {
    text += fmt::format("{} {} {:.4g}", i == 0 ? "" : ",", printable(evaluated.metrics[i].name),
                        plain_nan(evaluated.metrics[i].value));
  }
  return text + (evaluated.best ? " (best so far)" : "");
}

}  // namespace stoker::io
