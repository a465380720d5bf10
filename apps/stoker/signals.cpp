// SPDX-License-Identifier: Apache-2.0
// Signals of what takes long. Ctrl-C: once asks it to come to an end in order, twice ends the process at once.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "commands.h"

namespace stoker::app {
namespace {

std::atomic<bool> stop_asked{false};
char stop_text[128] = "";                               // a line; set before the handler is
static_assert(std::atomic<bool>::is_always_lock_free);  // so that a signal handler may touch it

void on_signal(int) {
  if (stop_asked.exchange(true)) {
    _exit(130);
  }
  [[maybe_unused]] const auto written = write(STDERR_FILENO, stop_text, std::strlen(stop_text));
}

}  // namespace

const std::atomic<bool>& stop_on_signal(const char* text) {
  std::snprintf(stop_text, sizeof stop_text, "\nstoker: %s\n", text);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a read or a write that a library makes meanwhile goes on
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_asked;
}

void survive_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace stoker::app
