// SPDX-License-Identifier: Apache-2.0
// Files and their meaning: proc(5), /proc/stat, /proc/meminfo, /proc/net/dev.
#include "stoker/observe/monitor/machine_reader.h"

#include <unistd.h>

#include <array>
#include <charconv>

namespace stoker::observe {
namespace {

// The next number of a line; none at its end.
std::optional<double> next(std::string_view& rest) {
  const std::size_t start = std::min(rest.find_first_not_of(' '), rest.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data() + start, rest.data() + rest.size(), value);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return error == std::errc() ? std::optional(static_cast<double>(value)) : std::nullopt;
}

}  // namespace

MachineWatch::MachineWatch(const std::filesystem::path& root)
    : stat_(root / "proc/stat"),
      memory_(root / "proc/meminfo"),
      network_(root / "proc/self/net/dev"),
      before_(read()) {}

MachineWatch::Counters MachineWatch::read() {
  Counters counters;
  std::string_view text = stat_.read();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with("cpu ")) {
    text.remove_prefix(4);
    std::array<std::optional<double>, 8> ticks;  // user nice system idle iowait irq softirq steal
    for (auto& each : ticks) {
      each = next(text);
    }
    const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    if (ticks[6]) {
      counters.busy_seconds = tick * (*ticks[0] + *ticks[1] + *ticks[2] + *ticks[5] + *ticks[6]);
    }
    if (ticks[7]) {
      counters.stolen_seconds = tick * *ticks[7];
    }
  }
  for (std::string_view lines = network_.read(); !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos || line.substr(0, colon).ends_with(" lo") || line.starts_with("lo:")) {
      continue;
    }
    line.remove_prefix(colon + 1);
    std::array<std::optional<double>, 9> columns;  // bytes received first, bytes sent ninth
    for (auto& each : columns) {
      each = next(line);
    }
    if (columns[0] && columns[8]) {
      counters.received_bytes = counters.received_bytes.value_or(0) + *columns[0];
      counters.sent_bytes = counters.sent_bytes.value_or(0) + *columns[8];
    }
  }
  return counters;
}

void MachineWatch::report(double seconds, Figures& figures) {
  const Counters now = read();
  figures.put("machine.busy_cores", rate(before_.busy_seconds, now.busy_seconds, seconds));
  figures.put("machine.stolen_cores", rate(before_.stolen_seconds, now.stolen_seconds, seconds));
  figures.put("machine.received_bytes_per_second", rate(before_.received_bytes, now.received_bytes, seconds));
  figures.put("machine.sent_bytes_per_second", rate(before_.sent_bytes, now.sent_bytes, seconds));
  const std::int64_t available = device::kernel_bytes(memory_.read(), "MemAvailable");
  figures.put("machine.available_bytes", available < 0 ? std::nullopt : std::optional(static_cast<double>(available)));
  before_ = now;
}

}  // namespace stoker::observe
