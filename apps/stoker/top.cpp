// SPDX-License-Identifier: Apache-2.0
// stoker top: a screen with devices, processes and trainings, live or once.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/study/top/screen.h"
#include "terminal.h"

namespace stoker::app {
namespace {

constexpr int kWidth = 100, kHeight = 40;  // without a terminal

struct TopWords {
  std::vector<std::string> runs;
  bool once = false;
};

std::vector<std::filesystem::path> folders(const TopWords& words) {
  for (const std::string& run : words.runs) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(std::filesystem::path(run) / "metrics.jsonl", error)) {
      fail<DataError>("stoker.top",
                      "{}: is not a run folder (it has no metrics.jsonl); give a folder made by `stoker train`",
                      printable(run));
    }
  }
  return {words.runs.begin(), words.runs.end()};
}

// Once: the figures of half a second, as text.
int print_screen(study::MachineView& view) {
  constexpr double kLook = 0.5;
  std::this_thread::sleep_for(std::chrono::duration<double>(kLook));
  for (const study::ScreenLine& line : study::top_screen(view.look(kLook), kWidth, kHeight)) {
    fmt::print("{}\n", line.text);
  }
  return kDone;
}

// Until the user ends it; each second a look. A key, or a new size, draws the same figures again.
int show_screen(study::MachineView& view) {
  constexpr double kSecond = 1;
  Terminal terminal;
  Stopwatch since;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  while (true) {
    const study::Watched& watched = view.look(since.restart());
    do {
      terminal.show(study::top_screen(watched, terminal.width(), terminal.height()));
      if (terminal.wait(std::max(kSecond - since.seconds(), 0.0)) == Key::kQuit) {
        return kDone;
      }
    } while (since.seconds() < kSecond);
  }
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TopWords>();
  CLI::App* command = app.add_subcommand("top", "Watch devices, processes and trainings in the terminal; q ends it");
  command->add_option("RUN", words->runs, "run folders to show besides the trainings that run");
  command->add_flag("--once", words->once, "print one screen as text and end");
  command->callback([words, &exit_code] {
    study::MachineView view(folders(*words));
    const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
    exit_code = words->once || !terminal ? print_screen(view) : show_screen(view);
  });
}

}  // namespace stoker::app
