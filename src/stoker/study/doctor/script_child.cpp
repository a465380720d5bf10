// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/script_child.h"

#include <spawn.h>
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

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) {
    result.push_back(const_cast<char*>(word.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

ScriptChild::ScriptChild(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  ::sigemptyset(&ours_);
  ::sigaddset(&ours_, SIGCHLD);
  for (const int each : kForwarded) {
    ::sigaddset(&ours_, each);
  }
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &before_);
  sigset_t usual;  // this program ignores SIGPIPE; the script should not
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawnp(&child_, command[0].c_str(), nullptr, &attributes, pointers(command).data(),
                                   pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail<ConfigError>("stoker.doctor", "{}: cannot be started: {}", printable(command[0]), std::strerror(error));
  }
}

ScriptChild::~ScriptChild() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> ScriptChild::wait(double seconds) {
  const Stopwatch watch;
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(child_, &status, WNOHANG);
    if (ended == child_) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    const double left = seconds - watch.seconds();
    if (left <= 0) {
      return std::nullopt;
    }
    const timespec time{static_cast<time_t>(left), static_cast<long>(1e9 * (left - std::floor(left)))};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&ours_, &info, &time);
    // A signal of the terminal's keys has reached the child, too: it goes to the whole group.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) {
      ::kill(child_, signal);
    }
  }
}

}  // namespace stoker::study
