// SPDX-License-Identifier: Apache-2.0
// The terminal as a screen of lines, by ncurses (docs/decisions/ncurses.md). Used by `stoker top`. One at a time, one
// thread.
#pragma once

#include <vector>

#include "stoker/study/top/screen.h"

namespace stoker::app {

enum class Key { kNone, kQuit, kResized };

class Terminal {
 public:
  // Takes the whole screen; the destructor gives it back as it was. ConfigError if the terminal is unknown.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] int width() const;
  [[nodiscard]] int height() const;
  void show(const std::vector<study::ScreenLine>& lines);
  // Waits for a key (q, Escape or Ctrl-C quits), for a new size, or for `seconds`.
  [[nodiscard]] Key wait(double seconds);
};

}  // namespace stoker::app
