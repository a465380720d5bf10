// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/member.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "stoker/base/fmt.h"

namespace stoker::parallel {
namespace {

std::string first_word_of(const char* file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

std::string link_of(const char* path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path, target.data(), target.size());
  return {target.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
}

// The fields of /proc/PID/stat from the third on (man proc_pid_stat); none: there is no such process.
std::vector<std::string> stat_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  return {std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>()};
}

// Of a process that nobody has waited for: the last field is its status, as waitpid() gives it.
std::string ending(const std::vector<std::string>& stat) {
  const int status = std::atoi(stat.back().c_str());
  if (const int number = status & 0x7F; number != 0) {
    return fmt::format("has ended by signal {} ({})", number, ::strsignal(number));
  }
  return fmt::format("has ended with code {}", (status >> 8) & 0xFF);
}

}  // namespace

Member this_process() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  return {host.data(), ::getpid(), first_word_of("/proc/sys/kernel/random/boot_id") + link_of("/proc/self/ns/pid")};
}

std::string to_text(const Member& member, std::size_t bytes) {
  return fmt::format("{} {} {}", member.process, member.home, member.host).substr(0, bytes);
}

Member member_from(const std::string& text) {
  Member member;
  std::istringstream(text) >> member.process >> member.home >> member.host;
  return member;
}

std::string fate(const Member& member, const Member& self) {
  if (member.home != self.home) {
    return "";
  }
  const std::vector<std::string> stat = stat_of(member.process);
  if (stat.empty()) {
    return "has ended";
  }
  switch (stat.front()[0]) {
    case 'Z':
    case 'X': return ending(stat);
    case 'T': return "is stopped by a signal";
    case 't': return "is stopped by a debugger";
    case 'D': return "is blocked in the kernel, as by a disk or a file server that does not answer";
    default: return "";
  }
}

}  // namespace stoker::parallel
