// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/thread_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "stoker/base/fmt.h"

namespace stoker::observe {
namespace {

constexpr double kIdleCores = 1e-3;

// A small kernel file in few calls: a process may have hundreds of threads.
std::string_view read_small(const std::string& path, std::array<char, 4096>& buffer) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return {};
  }
  const ssize_t size = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::optional<double> field(std::string_view status, std::string_view key) {
  const auto value = device::leading_number(device::kernel_field(status, key));
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

// "ran waited slices", in nanoseconds; empty or "0 0 0" without CONFIG_SCHEDSTATS.
void parse_schedstat(std::string_view text, ThreadTimes& times) {
  const std::size_t blank = text.find(' ');
  const auto ran = device::leading_number(text);
  const auto waited = device::leading_number(blank == text.npos ? "" : text.substr(blank + 1));
  if (ran && waited && *ran > 0) {
    times.cpu_seconds = 1e-9 * static_cast<double>(*ran);
    times.waited_seconds = 1e-9 * static_cast<double>(*waited);
  }
}

struct Group {
  double threads = 0, cpu = 0, system = 0;
  std::optional<double> waited, switches, preemptions;
};

void add(std::optional<double>& sum, std::optional<double> before, std::optional<double> now) {
  if (now && *now >= before.value_or(0)) {
    sum = sum.value_or(0) + *now - before.value_or(0);
  }
}

}  // namespace

std::string thread_group(std::string_view name, std::string_view process_name, bool main) {
  if (main) {
    return "main";
  }
  if (name == process_name) {
    return "unnamed";
  }
  std::string group;
  for (const unsigned char c : name) {
    group += std::isalnum(c) != 0 || c == '-' ? static_cast<char>(c) : '_';
  }
  const std::size_t last = group.find_last_not_of("0123456789_-");
  return last == group.npos ? "unnamed" : group.substr(0, last + 1);
}

std::map<int, ThreadTimes> read_threads(const std::filesystem::path& process) {
  std::map<int, ThreadTimes> result;
  std::array<char, 4096> buffer;
  const std::string process_name = parse_stat(read_small(process / "stat", buffer)).name;
  const auto pid = device::leading_number(read_small(process / "stat", buffer)).value_or(-1);
  std::error_code error;
  std::filesystem::directory_iterator it(process / "task", error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string folder = it->path().native(), id = it->path().filename().native();
    int thread = 0;
    if (std::from_chars(id.data(), id.data() + id.size(), thread).ec != std::errc()) {
      continue;
    }
    const ProcessTimes times = parse_stat(read_small(folder + "/stat", buffer));
    if (!times.user_seconds || !times.system_seconds) {
      continue;  // it ended meanwhile
    }
    ThreadTimes& each = result[thread];
    each.group = thread_group(times.name, process_name, thread == pid);
    each.state = times.state;
    each.cpu_seconds = *times.user_seconds + *times.system_seconds;
    each.system_seconds = *times.system_seconds;
    parse_schedstat(read_small(folder + "/schedstat", buffer), each);
    const std::string_view status = read_small(folder + "/status", buffer);
    each.switches = field(status, "voluntary_ctxt_switches");
    each.preemptions = field(status, "nonvoluntary_ctxt_switches");
  }
  return result;
}

void ThreadWatch::report(double seconds, Figures& figures) {
  std::map<int, ThreadTimes> now = read_threads(process_);
  std::map<std::string, Group> groups;
  double blocked = 0;
  for (const auto& [id, thread] : now) {
    const auto found = before_.find(id);
    const bool known = found != before_.end() && found->second.cpu_seconds <= thread.cpu_seconds;
    const ThreadTimes before = known ? found->second : ThreadTimes();
    Group& group = groups[thread.group];
    ++group.threads;
    blocked += thread.state == 'D' ? 1 : 0;
    group.cpu += thread.cpu_seconds - before.cpu_seconds;
    group.system += std::max(thread.system_seconds - before.system_seconds, 0.0);
    add(group.waited, before.waited_seconds, thread.waited_seconds);
    add(group.switches, before.switches, thread.switches);
    add(group.preemptions, before.preemptions, thread.preemptions);
  }
  figures.put("process.blocked_threads", blocked);
  for (const auto& [name, group] : groups) {
    if (group.cpu + group.waited.value_or(0) < kIdleCores * seconds) {
      continue;
    }
    const auto put = [&](const char* what, std::optional<double> value) {
      figures.put(fmt::format("threads.{}.{}", name, what), value ? std::optional(*value / seconds) : std::nullopt);
    };
    figures.put(fmt::format("threads.{}.count", name), group.threads);
    put("cpu_cores", group.cpu);
    put("system_cores", group.system);
    put("waiting_cores", group.waited);
    put("switches_per_second", group.switches);
    put("preemptions_per_second", group.preemptions);
  }
  before_ = std::move(now);
}

}  // namespace stoker::observe
