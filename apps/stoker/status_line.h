// SPDX-License-Identifier: Apache-2.0
// Progress of a command that does not train, on standard error. On a terminal: one line that is overwritten; elsewhere
// a line at a time. One thread.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "stoker/base/clock.h"

namespace stoker::app {

class StatusLine {
 public:
  // apart: without a terminal, seconds until the first line and between lines.
  explicit StatusLine(double apart = 0) : apart_(apart), shown_at_(now_s()) {}
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { hide(); }

  void show(const std::string& text) {
    if (!terminal_ && now_s() - shown_at_ < apart_) {
      return;
    }
    shown_at_ = now_s();
    shown_ = true;
    std::fputs((terminal_ ? kErase + text : text + "\n").c_str(), stderr);
    std::fflush(stderr);
  }
  void hide() {
    if (terminal_ && shown_) {
      std::fputs(kErase, stderr);
    }
    shown_ = false;
  }

 private:
  static constexpr const char* kErase = "\r\x1b[K";

  double apart_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  double shown_at_;
  bool shown_ = false;
};

}  // namespace stoker::app
