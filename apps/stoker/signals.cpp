// SPDX-License-Identifier: Apache-2.0
// Signals for long commands. The first Ctrl-C asks for a clean stop, the second ends the process at once. SIGUSR1, by
// which Slurm warns before the end of a job, asks for a stop, too.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "commands.h"

namespace stoker::app {
namespace {

std::atomic<bool> stop_asked{false};
std::atomic<bool> in_order{false};  // stop_asked is being checked
std::atomic<int> early_code{130};   // exit code of the process if nothing checks it
char stop_text[128] = "";           // one line; set before the handler
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);  // safe to use in a signal handler

void on_signal(int number) {
  if (stop_asked.exchange(true)) {
    if (number == SIGUSR1) {  // Slurm's warning, which may come again
      return;
    }
    _exit(130);
  }
  [[maybe_unused]] const auto written = write(STDERR_FILENO, stop_text, std::strlen(stop_text));
  if (!in_order) {
    _exit(early_code);
  }
}

void handle(const char* text) {
  std::snprintf(stop_text, sizeof stop_text, "%s%s%s", *text == 0 ? "" : "\nstoker: ", text, *text == 0 ? "" : "\n");
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes inside libraries continue
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

}  // namespace

const std::atomic<bool>& stop_on_signal(const char* text) {
  in_order = true;  // first: a signal in between is a normal stop request
  handle(text);
  return stop_asked;
}

void end_on_signal(const char* text, int code) {
  early_code = code;
  handle(text);
}

void survive_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace stoker::app
