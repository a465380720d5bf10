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
#include "stoker/study/doctor/folder_layer.h"

namespace stoker::study {
namespace {

constexpr std::array kForwarded = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) {
    result.push_back(const_cast<char*>(word.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

int open_output(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    fail<IoError>("stoker.doctor", "{}: cannot be made: {}", printable(path.native()), std::strerror(errno));
  }
  return file;
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    variables.emplace_back(*each);
  }
  return variables;
}

ScriptChild::ScriptChild(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         const Apart* apart) {
  const int output = apart == nullptr ? -1 : open_output(apart->output);
  ::sigemptyset(&ours_);
  ::sigaddset(&ours_, SIGCHLD);
  ::sigaddset(&ours_, SIGTTOU);  // blocked, a process in the background may give the terminal away
  for (const int each : kForwarded) {
    ::sigaddset(&ours_, each);
  }
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  has_terminal_ = apart == nullptr && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  std::array<int, 2> pipe{-1, -1};  // closed by exec; otherwise it brings the reason
  int error = ::pipe2(pipe.data(), O_CLOEXEC) == 0 ? 0 : errno;
  const Start start{pointers(command), pointers(environment), output, pipe[1],
                    apart == nullptr ? nullptr : apart->layer};
  child_ = error == 0 ? ::fork() : -1;
  if (child_ == 0) {
    become(start);
  }
  if (error == 0 && child_ < 0) {
    error = errno;
  }
  ::close(pipe[1]);
  if (error == 0 && ::read(pipe[0], &error, sizeof(error)) == sizeof(error)) {
    ::waitpid(child_, nullptr, 0);
  }
  ::close(pipe[0]);
  if (output >= 0) {
    ::close(output);
  }
  if (error != 0) {
    take_terminal(::getpgrp());
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail<ConfigError>("stoker.doctor", "{}: cannot be started: {}", printable(command[0]), std::strerror(error));
  }
}

// In the child, where only functions may be called that a signal handler may call.
void ScriptChild::become(const Start& start) const {
  ::setpgid(0, 0);
  take_terminal(::getpid());   // before the child reads from it
  ::signal(SIGPIPE, SIG_DFL);  // this program ignores it; the script should not
  int error = start.layer == nullptr ? 0 : start.layer->enter();
  if (error == 0 && start.output >= 0) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool done = nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(start.output, STDOUT_FILENO) >= 0 &&
                      ::dup2(start.output, STDERR_FILENO) >= 0;
    error = done ? 0 : errno;
  }
  if (error == 0) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::execvpe(start.words[0], start.words.data(), start.variables.data());
    error = errno;
  }
  [[maybe_unused]] const ssize_t written = ::write(start.pipe, &error, sizeof(error));
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
      passed_ = signal;
      ::kill(child_, signal);
    }
  }
}

}  // namespace stoker::study
