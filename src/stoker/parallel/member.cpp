// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/member.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/parallel/process_stat.h"

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

// Of a process that nobody has waited for: the last field is its status, as waitpid() gives it.
std::string ending(const std::vector<std::string>& stat) {
  const int status = std::atoi(stat.back().c_str());
  if (const int number = status & 0x7F; number != 0) {
    return fmt::format("has ended by signal {} ({})", number, ::strsignal(number));
  }
  return fmt::format("has ended with code {}", (status >> 8) & 0xFF);
}

}  // namespace

std::string boot_id() { return first_word_of("/proc/sys/kernel/random/boot_id"); }

Member this_process() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  return {host.data(), ::getpid(), boot_id() + link_of("/proc/self/ns/pid")};
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
  const std::vector<std::string> stat = process_stat(std::to_string(member.process));
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
