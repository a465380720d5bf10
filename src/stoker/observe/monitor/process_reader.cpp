// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/process_reader.h"

#include <unistd.h>

#include <array>

namespace stoker::observe {
namespace {

// The next word of a line.
std::string_view word(std::string_view& rest) {
  const std::size_t start = rest.find_first_not_of(" \n");
  if (start == rest.npos) {
    rest = {};
    return {};
  }
  const std::size_t end = std::min(rest.find_first_of(" \n", start), rest.size());
  const std::string_view found = rest.substr(start, end - start);
  rest.remove_prefix(end);
  return found;
}

std::optional<double> number(std::string_view text) {
  const auto value = device::leading_number(text);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> scaled(std::optional<double> value, double scale) {
  return value ? std::optional(*value * scale) : std::nullopt;
}

std::optional<double> bytes(std::string_view text, std::string_view key) {
  const std::int64_t value = device::kernel_bytes(text, key);
  return value < 0 ? std::nullopt : std::optional(static_cast<double>(value));
}

}  // namespace

ProcessTimes parse_stat(std::string_view line) {
  ProcessTimes times;
  const std::size_t open = line.find('('), close = line.rfind(')');  // the name may hold both
  if (open == line.npos || close == line.npos || close < open) {
    return times;
  }
  times.name = line.substr(open + 1, close - open - 1);
  std::string_view rest = line.substr(close + 1);
  const std::string_view state = word(rest);
  times.state = state.empty() ? '?' : state[0];
  std::array<std::optional<double>, 21> fields;  // 4 (ppid) to 24 (rss)
  for (auto& field : fields) {
    field = number(word(rest));
  }
  const auto field = [&](std::size_t of_proc5) { return fields[of_proc5 - 4]; };
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  times.parent = field(4);
  times.session = field(6);
  times.page_faults = field(10);
  times.disk_faults = field(12);
  times.user_seconds = scaled(field(14), tick);
  times.system_seconds = scaled(field(15), tick);
  times.threads = field(20);
  times.start_seconds = scaled(field(22), tick);
  times.resident_bytes = scaled(field(24), static_cast<double>(::sysconf(_SC_PAGESIZE)));
  return times;
}

ProcessIo parse_io(std::string_view text) {
  return {number(device::kernel_field(text, "rchar")), number(device::kernel_field(text, "read_bytes")),
          number(device::kernel_field(text, "write_bytes"))};
}

ProcessPages parse_smaps(std::string_view text) { return {bytes(text, "Pss"), bytes(text, "Private_Dirty")}; }

std::optional<double> open_files(const std::filesystem::path& process) {
  std::error_code error;
  std::filesystem::directory_iterator it(process / "fd", error);
  double count = 0;
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return error ? std::nullopt : std::optional(count);
}

}  // namespace stoker::observe
