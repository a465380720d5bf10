// SPDX-License-Identifier: Apache-2.0
// The process of a rank as the others know it, and what became of it if it runs on this machine. Without torch; values.
#pragma once

#include <string>

namespace stoker::parallel {

struct Member {
  std::string host;
  int process = 0;   // its number on that host
  std::string home;  // boot and process namespace of the machine: two processes with the same one see each other
};

[[nodiscard]] Member this_process();
// Of this machine since it started: the same in its containers. Empty: unknown.
[[nodiscard]] std::string boot_id();
// A line; what does not fit into `bytes` bytes is cut.
[[nodiscard]] std::string to_text(const Member& member, std::size_t bytes);
[[nodiscard]] Member member_from(const std::string& text);

// "has ended by signal 9 (Killed)", "is stopped by a signal or a debugger", by /proc; empty: it lives, or it runs on
// another machine.
[[nodiscard]] std::string fate(const Member& member, const Member& self);

}  // namespace stoker::parallel
