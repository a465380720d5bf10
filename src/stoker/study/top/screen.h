// SPDX-License-Identifier: Apache-2.0
// The screen of `stoker top` as lines of text with a style for each, for a terminal or a pipe. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/study/top/watch.h"

namespace stoker::study {

enum class LineStyle { kNormal, kTitle, kHead, kGood, kWarning, kFaint };

struct ScreenLine {
  std::string text;  // UTF-8, at most as wide as the screen
  LineStyle style = LineStyle::kNormal;
};

// At most `height` lines of at most `width` characters.
[[nodiscard]] std::vector<ScreenLine> top_screen(const Watched& watched, int width, int height);

// The last `width` values as bars of eight heights; top: the value of a full bar, 0: the highest one.
[[nodiscard]] std::string sparkline(const History& values, int width, double top = 0);

}  // namespace stoker::study
