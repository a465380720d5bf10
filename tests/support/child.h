// SPDX-License-Identifier: Apache-2.0
// Runs a function in a forked child process that the kernel may kill or limit. The child must not start threads or use
// torch. For one thread.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>

namespace stoker::testing {

struct ChildEnd {
  int code = -1;   // of exit, -1 if a signal ended it
  int signal = 0;  // that ended it
};

// code: what the function returns; 99 if it throws.
inline ChildEnd in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = work();
    } catch (const std::exception&) {
      code = 99;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace stoker::testing
