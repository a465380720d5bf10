// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/siblings.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
constexpr std::string_view kWhere = "parallel.siblings";
constexpr auto kPatience = 10s;  // for the others to end by themselves

fs::path new_folder() {
  std::string name = (fs::temp_directory_path() / "stoker-ranks-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) {
    fail<IoError>(kWhere, "{}: the folder in which the ranks meet cannot be made: {}; set TMPDIR", printable(name),
                  std::strerror(errno));
  }
  return name;
}

// The words that this program was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\0', begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end == text.npos ? text.size() : end + 1;
  }
  return words;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) {
    result.push_back(word.data());
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

Siblings::Siblings(int ranks) : folder_(new_folder()) {
  place_.ranks = place_.local_ranks = ranks;
  place_.starter = "ranks=";
  place_.meeting.file = (folder_ / "meeting").native();
  try {
    for (int rank = 1; rank < ranks; ++rank) {
      start(rank);
    }
  } catch (...) {
    for (const pid_t other : others_) {
      ::kill(other, SIGKILL);
    }
    end();
    throw;
  }
}

Siblings::~Siblings() { end(); }

void Siblings::start(int rank) {
  std::vector<std::string> words = own_words(), variables;
  for (char** each = environ; *each != nullptr; ++each) {
    variables.emplace_back(*each);
  }
  variables.push_back(fmt::format("STOKER_RANK={}", rank));
  variables.push_back(fmt::format("STOKER_RANKS={}", place_.ranks));
  variables.push_back("STOKER_MEETING_FILE=" + place_.meeting.file);
  variables.push_back(fmt::format("STOKER_STARTER={}", ::getpid()));
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, pointers(words).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    fail<IoError>(kWhere, "rank {} of {} cannot be started: {}; look at the limit on processes (ulimit -u)", rank,
                  place_.ranks, std::strerror(error));
  }
  others_.push_back(child);
}

void Siblings::check() {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    int status = 0;
    if (others_[i] != 0 && ::waitpid(others_[i], &status, WNOHANG) == others_[i]) {
      others_[i] = 0;
      fail<RankError>(kWhere, "rank {} ended before the ranks met: {}", i + 1,
                      WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                          : fmt::format("code {}", WEXITSTATUS(status)));
    }
  }
}

void Siblings::end() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (const pid_t other : others_) {
    while (other != 0 && ::waitpid(other, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        ::kill(other, SIGKILL);
        ::waitpid(other, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(5ms);
    }
  }
  others_.clear();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void end_with_starter() {
  const char* const starter = std::getenv("STOKER_STARTER");
  if (starter == nullptr) {
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != starter) {  // it ended before the line above
    ::_exit(1);
  }
}

}  // namespace stoker::parallel
