// SPDX-License-Identifier: Apache-2.0
// Runs the built `stoker` (STOKER_BIN names its folder) as a child process with a time limit, and collects its output
// and exit code. For one thread.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stoker::testing {

using Words = std::vector<std::string>;

// A key=value in second replaces the same key in first, because the command line accepts each key only once.
inline Words operator+(Words first, const Words& second) {
  for (const std::string& word : second) {
    const std::string key = word.substr(0, word.find('=') + 1);
    std::erase_if(first, [&](const std::string& each) { return !key.empty() && each.starts_with(key); });
  }
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

struct Finished {
  int code = -1;  // exit code; 128 + N: ended by signal N; -1: had to be killed at the time limit
  std::string out, err;
  [[nodiscard]] std::string all() const { return out + err; }
};

inline std::filesystem::path stoker_program() {
  const char* folder = std::getenv("STOKER_BIN");
  if (folder == nullptr) {
    throw std::runtime_error("STOKER_BIN is not set; it names the folder of the stoker to test, and ctest sets it");
  }
  return std::filesystem::path(folder) / "stoker";
}

class StokerProcess {
 public:
  static constexpr double kLimit = 240;  // seconds; a healthy child takes about one

  // before_exec runs in the child; a result other than 0 ends it with that code.
  StokerProcess(const Words& words, const std::filesystem::path& folder, const std::function<int()>& before_exec = {},
                const std::filesystem::path& program = stoker_program())
      : out_(::memfd_create("out", MFD_CLOEXEC)), err_(::memfd_create("err", MFD_CLOEXEC)) {
    std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::setenv("OMP_NUM_THREADS", "1", 1);
      ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // these tests use the CPU; GPUs have their own tests
      ::dup2(out_, STDOUT_FILENO);
      ::dup2(err_, STDERR_FILENO);
      if (::chdir(folder.c_str()) != 0) {
        ::_exit(96);
      }
      if (const int code = prepare(before_exec); code != 0) {
        ::_exit(code);
      }
      ::execv(program.c_str(), arguments.data());
      ::_exit(95);
    }
  }
  ~StokerProcess() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(out_);
    ::close(err_);
  }
  StokerProcess(const StokerProcess&) = delete;
  StokerProcess& operator=(const StokerProcess&) = delete;

  [[nodiscard]] pid_t id() const { return child_; }
  void signal(int number) const { ::kill(child_, number); }
  [[nodiscard]] std::string out() const { return content(out_); }
  [[nodiscard]] std::string err() const { return content(err_); }

  // Waits until standard output contains text `times` times. False if the child ended first, or at the time limit.
  bool wait_for(const std::string& text, int times = 1) {
    return poll([&] {
      const std::string seen = out();
      int found = 0;
      for (std::size_t at = seen.find(text); at != std::string::npos; at = seen.find(text, at + 1)) {
        ++found;
      }
      return found >= times;
    });
  }

  Finished finish() {
    poll([] { return false; });
    if (!ended_) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, &status_, 0);
    }
    child_ = -1;
    const int code = !ended_ ? -1 : WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    return {code, out(), err()};
  }

 private:
  // Runs in the child, which must never continue with the parent's code.
  static int prepare(const std::function<int()>& before_exec) {
    try {
      return before_exec ? before_exec() : 0;
    } catch (...) {
      return 97;
    }
  }
  // False if the child ended first, or at the time limit.
  bool poll(const std::function<bool()>& reached) {
    for (const auto start = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - start < std::chrono::duration<double>(kLimit);) {
      if (reached()) {
        return true;
      }
      if (ended_ || ::waitpid(child_, &status_, WNOHANG) == child_) {
        ended_ = true;
        return reached();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  static std::string content(int file) {
    struct stat facts {};
    ::fstat(file, &facts);
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    const ssize_t got = ::pread(file, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }

  int out_, err_;
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

inline Finished run_stoker(const Words& words, const std::filesystem::path& folder,
                           const std::function<int()>& before_exec = {}) {
  return StokerProcess(words, folder, before_exec).finish();
}

// Runs several at a time; the results are in the order of the commands.
inline std::vector<Finished> run_all(const std::vector<Words>& commands, const std::filesystem::path& folder) {
  constexpr std::size_t kTogether = 2;
  std::vector<Finished> results;
  for (std::size_t first = 0; first < commands.size(); first += kTogether) {
    std::vector<std::unique_ptr<StokerProcess>> running;
    for (std::size_t i = first; i < std::min(first + kTogether, commands.size()); ++i) {
      running.push_back(std::make_unique<StokerProcess>(commands[i], folder));
    }
    for (const auto& each : running) {
      results.push_back(each->finish());
    }
  }
  return results;
}

}  // namespace stoker::testing
