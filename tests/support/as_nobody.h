// SPDX-License-Identifier: Apache-2.0
// Runs a check as the user nobody in a child process, because permissions do not restrict root. Call it from a process
// without other threads that hold locks.
#pragma once

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace stoker::testing {

// Returns the result of check: 0 for success, otherwise a small number that check chooses. -1: the child could not be
// started or did not exit normally. If the process does not run as root, the check runs as the current user.
inline int as_nobody(const std::function<int()>& check) {
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) {
      ::_exit(99);
    }
    int code = 98;
    try {
      code = check();
    } catch (...) {
      code = 97;
    }
    ::_exit(code);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return -1;
  }
  return WEXITSTATUS(status);
}

}  // namespace stoker::testing
