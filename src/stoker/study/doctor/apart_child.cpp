// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/apart_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/study/doctor/folder_layer.h"
#include "stoker/study/doctor/script_child.h"

namespace stoker::study {
namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr double kGrace = 5;   // seconds between SIGINT, SIGTERM and SIGKILL
constexpr double kLook = 0.5;  // seconds after which we look again: another thread may have received the signal

timespec span_of(double seconds) {
  return {static_cast<time_t>(seconds), static_cast<long>(1e9 * (seconds - std::floor(seconds)))};
}

int open_output(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    fail<IoError>("stoker.doctor", "{}: cannot be made: {}", printable(path.native()), std::strerror(errno));
  }
  return file;
}

// With orphans of them, since we are their reaper.
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  std::ifstream file("/proc/thread-self/children");
  for (pid_t each = 0; file >> each;) {
    children.push_back(each);
  }
  return children;
}

}  // namespace

HeldSignals::HeldSignals(const std::atomic<bool>* stop) : stop_(stop) {
  ::sigemptyset(&ending_);
  for (const int each : kEnding) {
    ::sigaddset(&ending_, each);
  }
  ours_ = ending_;
  ::sigaddset(&ours_, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

HeldSignals::~HeldSignals() { release(); }

void HeldSignals::release() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void HeldSignals::wait(double seconds) {
  const timespec time = span_of(std::max(seconds, 0.0));
  const int signal = ::sigtimedwait(&ours_, nullptr, &time);
  came_ = came_ || std::ranges::count(kEnding, signal) > 0;
}

bool HeldSignals::came() {
  const timespec now{};
  came_ = ::sigtimedwait(&ending_, nullptr, &now) > 0 || came_;  // leaves SIGCHLD for wait()
  came_ = came_ || (stop_ != nullptr && *stop_);
  return came_;
}

ApartChild::ApartChild(HeldSignals& signals, const std::vector<std::string>& command,
                       const std::vector<std::string>& environment, const std::filesystem::path& output,
                       const FolderLayer* layer)
    : signals_(signals) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int file = open_output(output);
  std::array<int, 2> pipe{-1, -1};  // closed by exec; otherwise it brings the reason
  int error = ::pipe2(pipe.data(), O_CLOEXEC) == 0 ? 0 : errno;
  const Start start{pointers_to(command), pointers_to(environment), file, pipe[1], layer};
  child_ = error == 0 ? ::fork() : -1;
  if (child_ == 0) {
    become(start);
  }
  error = error == 0 && child_ < 0 ? errno : error;
  ::close(pipe[1]);
  ::close(file);
  if (error == 0 && ::read(pipe[0], &error, sizeof(error)) == sizeof(error)) {
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  ::close(pipe[0]);
  if (error != 0) {
    fail<ConfigError>("stoker.doctor", "{}: cannot be started: {}{}", printable(command[0]), std::strerror(error),
                      command[0].ends_with(".py") ? "; write `python` before the script" : "");
  }
}

// In the child, where only functions may be called that a signal handler may call.
void ApartChild::become(const Start& start) const {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);  // this program ignores it; the script should not
  int error = start.layer == nullptr ? 0 : start.layer->enter();
  if (error == 0) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool done = nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(start.output, STDOUT_FILENO) >= 0 &&
                      ::dup2(start.output, STDERR_FILENO) >= 0;
    error = done ? 0 : errno;
  }
  if (error == 0) {
    signals_.release();
    ::execvpe(start.words[0], start.words.data(), start.variables.data());
    error = errno;
  }
  [[maybe_unused]] const ssize_t written = ::write(start.pipe, &error, sizeof(error));
  ::_exit(127);
}

ApartChild::~ApartChild() { kill_all(); }

std::optional<int> ApartChild::wait(double seconds) {
  const Stopwatch watch;
  while (!code_) {
    int status = 0;
    if (::waitpid(child_, &status, WNOHANG) == child_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    const double left = seconds - watch.seconds();
    if (left <= 0 || signals_.came()) {
      break;
    }
    signals_.wait(std::min(left, kLook));
  }
  return code_;
}

void ApartChild::end() {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (code_) {
      break;
    }
    ::kill(-child_, signal);
    const Stopwatch watch;  // by itself: a signal that ended our own waiting must not end this one
    while (!code_ && watch.seconds() < kGrace) {
      code_ = wait(0.05);
      signals_.wait(0.05);
    }
  }
  kill_all();
}

void ApartChild::kill_all() {
  if (child_ > 0 && !code_) {
    ::kill(-child_, SIGKILL);
    int status = 0;
    ::waitpid(child_, &status, 0);
    code_ = 128 + SIGKILL;
  }
  for (std::vector<pid_t> left = own_children(); !left.empty(); left = own_children()) {
    for (const pid_t each : left) {
      ::kill(each, SIGKILL);
      ::waitpid(each, nullptr, 0);
    }
  }
}

}  // namespace stoker::study
