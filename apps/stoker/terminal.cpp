// SPDX-License-Identifier: Apache-2.0
// Compiled alone: curses.h defines short names.
#include "terminal.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <langinfo.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "stoker/base/error.h"

namespace stoker::app {
namespace {

constexpr int kEscape = 27, kTitle = 1, kGood = 2, kWarning = 3;

std::atomic<bool> ended = false;  // by a signal

chtype attribute(study::LineStyle style) {
  switch (style) {
    case study::LineStyle::kNormal: return A_NORMAL;
    case study::LineStyle::kTitle: return A_BOLD | COLOR_PAIR(kTitle);
    case study::LineStyle::kHead: return A_BOLD;
    case study::LineStyle::kGood: return COLOR_PAIR(kGood);
    case study::LineStyle::kWarning: return COLOR_PAIR(kWarning);
    case study::LineStyle::kFaint: return A_DIM;
  }
  return A_NORMAL;
}

}  // namespace

Terminal::Terminal() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  if (::newterm(nullptr, stdout, stdin) == nullptr) {
    const char* name = std::getenv("TERM");
    fail<ConfigError>("stoker.top", "the terminal \"{}\" is unknown here; set TERM, or use stoker top --once",
                      name == nullptr ? "" : name);
  }
  std::signal(SIGTERM, [](int) { ended = true; });
  std::signal(SIGINT, [](int) { ended = true; });
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(::stdscr, true);
  ::set_escdelay(50);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kTitle, COLOR_CYAN, -1);
    ::init_pair(kGood, COLOR_GREEN, -1);
    ::init_pair(kWarning, COLOR_YELLOW, -1);
  }
}

Terminal::~Terminal() { ::endwin(); }

int Terminal::width() const { return ::getmaxx(::stdscr); }
int Terminal::height() const { return ::getmaxy(::stdscr); }

void Terminal::show(const std::vector<study::ScreenLine>& lines) {
  ::werase(::stdscr);
  int row = 0;
  for (const study::ScreenLine& line : lines) {
    ::wattrset(::stdscr, static_cast<int>(attribute(line.style)));
    ::wmove(::stdscr, row++, 0);
    ::waddnstr(::stdscr, line.text.c_str(), -1);
  }
  ::wattrset(::stdscr, A_NORMAL);
  ::wrefresh(::stdscr);
}

Key Terminal::wait(double seconds) {
  ::wtimeout(::stdscr, static_cast<int>(seconds * 1000));
  const int key = ::wgetch(::stdscr);
  if (ended || key == 'q' || key == 'Q' || key == kEscape) {
    return Key::kQuit;
  }
  return key == KEY_RESIZE ? Key::kResized : Key::kNone;
}

}  // namespace stoker::app
