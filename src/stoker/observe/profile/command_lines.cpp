// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/command_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "stoker/base/clock.h"

namespace stoker::observe::profile {
namespace {

std::vector<char*> environment() {
  std::vector<char*> result;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("DEBUGINFOD_URLS=")) {
      result.push_back(*each);
    }
  }
  result.push_back(nullptr);
  return result;
}

// The child's number, -1 if there is none; its output goes to `out`.
pid_t start(const std::vector<std::string>& words, int out) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const std::vector<char*> variables = environment();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&files);
  return error == 0 ? child : -1;
}

// What comes from `in` until it ends or the time is over.
std::string read_until(int in, double seconds) {
  const Stopwatch watch;
  std::string text;
  std::array<char, 4096> part{};
  for (double left = seconds; left > 0; left = seconds - watch.seconds()) {
    pollfd one{in, POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(1e3 * left) + 1);
    const ssize_t size = ready > 0 ? ::read(in, part.data(), part.size()) : -1;
    if (size == 0 || (size < 0 && ready > 0 && errno != EINTR)) {
      break;
    }
    text.append(part.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

std::vector<std::string> command_lines(const std::vector<std::string>& words, double seconds) {
  std::array<int, 2> pipe{};
  if (seconds <= 0 || ::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return {};
  }
  const pid_t child = start(words, pipe[1]);
  ::close(pipe[1]);
  const std::string text = child > 0 ? read_until(pipe[0], seconds) : "";
  ::close(pipe[0]);
  if (child > 0) {
    ::kill(child, SIGKILL);  // it has ended, or its time is over
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace stoker::observe::profile
