// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/script_child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::study {
namespace {

constexpr std::array kForwarded = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    variables.emplace_back(*each);
  }
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) {
    result.push_back(const_cast<char*>(word.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

ScriptChild::ScriptChild(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  ::sigemptyset(&ours_);
  ::sigaddset(&ours_, SIGCHLD);
  ::sigaddset(&ours_, SIGTTOU);  // blocked, a process in the background may give the terminal away
  for (const int each : kForwarded) {
    ::sigaddset(&ours_, each);
  }
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  has_terminal_ = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  const std::vector<char*> words = pointers_to(command), variables = pointers_to(environment);
  std::array<int, 2> pipe{-1, -1};  // closed by exec; otherwise it brings the reason
  int error = ::pipe2(pipe.data(), O_CLOEXEC) == 0 ? 0 : errno;
  child_ = error == 0 ? ::fork() : -1;
  if (child_ == 0) {
    become(words, variables, pipe[1]);
  }
  if (error == 0 && child_ < 0) {
    error = errno;
  }
  ::close(pipe[1]);
  if (error == 0 && ::read(pipe[0], &error, sizeof(error)) == sizeof(error)) {
    ::waitpid(child_, nullptr, 0);
  }
  ::close(pipe[0]);
  if (error != 0) {
    take_terminal(::getpgrp());
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail<ConfigError>("stoker.doctor", "{}: cannot be started: {}{}", printable(command[0]), std::strerror(error),
                      command[0].ends_with(".py") ? "; write `python` before the script" : "");
  }
}

// In the child, where only functions may be called that a signal handler may call.
void ScriptChild::become(const std::vector<char*>& words, const std::vector<char*>& variables, int pipe) const {
  ::setpgid(0, 0);
  take_terminal(::getpid());   // before the child reads from it
  ::signal(SIGPIPE, SIG_DFL);  // this program ignores it; the script should not
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  ::execvpe(words[0], words.data(), variables.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(pipe, &error, sizeof(error));
  ::_exit(127);
}

ScriptChild::~ScriptChild() {
  take_terminal(::getpgrp());
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void ScriptChild::take_terminal(pid_t group) const {
  if (has_terminal_) {
    ::tcsetpgrp(STDIN_FILENO, group);
  }
}

void ScriptChild::stop_with_child() const {
  take_terminal(::getpgrp());
  ::raise(SIGSTOP);
  take_terminal(child_);
  ::kill(-child_, SIGCONT);
}

std::optional<int> ScriptChild::wait(double seconds) {
  const Stopwatch watch;
  while (true) {
    int status = 0;
    const pid_t changed = ::waitpid(child_, &status, WNOHANG | WUNTRACED);
    if (changed == child_ && WIFSTOPPED(status)) {
      if (has_terminal_ && WSTOPSIG(status) != SIGSTOP) {  // by a key; who sends SIGSTOP continues it, too
        stop_with_child();
      }
    } else if (changed == child_) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    const double left = seconds - watch.seconds();
    if (left <= 0) {
      return std::nullopt;
    }
    const timespec time{static_cast<time_t>(left), static_cast<long>(1e9 * (left - std::floor(left)))};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&ours_, &info, &time);
    if (signal > 0 && signal != SIGCHLD && signal != SIGTTOU) {
      ::kill(child_, signal);
    }
  }
}

}  // namespace stoker::study
