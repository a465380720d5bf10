// SPDX-License-Identifier: Apache-2.0
// Signals of a training. Ctrl-C: once asks the run to stop after its step and to save, twice ends the process at once.
#include <unistd.h>

#include <csignal>

#include "commands.h"

namespace stoker::app {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // so that a signal handler may touch it

void on_signal(int) {
  if (stop_asked.exchange(true)) {
    _exit(130);
  }
  constexpr char kText[] = "\nstoker: stopping after this step and saving; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

const std::atomic<bool>& stop_on_signal() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a read or a write that a library makes meanwhile goes on
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_asked;
}

void survive_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace stoker::app
