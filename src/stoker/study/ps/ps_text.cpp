// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ps/ps_text.h"

#include <algorithm>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/cut_text.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

constexpr std::size_t kCommandWidth = 60, kNoteWidth = 110;
constexpr double kGiB = 0x1p30;

std::string gib(std::optional<double> bytes) { return bytes ? fmt::format("{:.1f} GiB", *bytes / kGiB) : "?"; }

std::string held(std::int64_t bytes) { return bytes < 0 ? "?" : gib(static_cast<double>(bytes)); }

double busy_cores(const observe::ListedProcess& process) {
  return (process.times.user_seconds.value_or(0) + process.times.system_seconds.value_or(0)) /
         std::max(process.age_seconds, 1.0);
}

void line_of(std::string& text, const Holder& holder, const std::string& first) {
  if (holder.process) {
    const observe::ListedProcess& process = *holder.process;
    text += fmt::format("  {:>10} {:>8}  {:<10} {:>9}  {:>9}  {}\n", first, holder.pid,
                        cut_text(printable(process.user), 10), age_text(process.age_seconds),
                        gib(process.times.resident_bytes), cut_text(printable(process.command), kCommandWidth));
    if (!process.container.empty()) {
      text += fmt::format("  {:>10} {:>8}  in {}\n", "", "", process.container);
    }
  } else {  // what is odd takes the place of the command
    text += fmt::format("  {:>10} {:>8}  {:<10} {:>9}  {:>9}  {}\n", first, holder.pid, "?", "?", "?", holder.remark);
    return;
  }
  if (!holder.remark.empty()) {
    text += fmt::format("  {:>10} {:>8}  {}\n", "", "", holder.remark);
  }
}

// A paragraph in lines of at most kNoteWidth characters.
std::string note(const std::string& words) {
  std::string text = "\nnote:";
  std::size_t width = text.size() - 1;
  for (std::size_t start = 0; start < words.size();) {
    const std::size_t end = std::min(words.find(' ', start), words.size());
    const bool fits = width + 1 + end - start <= kNoteWidth;
    text += (fits ? " " : "\n  ") + words.substr(start, end - start);
    width = (fits ? width + 1 : 2) + end - start;
    start = end + 1;
  }
  return text + "\n";
}

std::string heading(const char* first) {
  return fmt::format("  {:>10} {:>8}  {:<10} {:>9}  {:>9}  {}\n", first, "pid", "user", "age", "memory", "command");
}

void gpus(std::string& text, const Holders& holders) {
  if (!holders.no_gpu.empty()) {
    text += fmt::format("GPU: {}\n", holders.no_gpu);
  }
  for (const HeldGpu& gpu : holders.gpus) {
    text += fmt::format("GPU {}: {}{}, {} of {} used{}\n", gpu.number, printable(gpu.name), gpu.mig ? " (MIG)" : "",
                        gib(gpu.used_bytes), gib(gpu.memory_bytes),
                        gpu.busy_share ? fmt::format(", busy {:.0f} % of the time", 100 * *gpu.busy_share) : "");
    const auto mine = [&](const Holder& holder) { return holder.gpu == gpu.number; };
    if (std::ranges::none_of(holders.of_gpus, mine)) {
      text += "  nobody holds memory, as far as the driver tells\n";
      continue;
    }
    text += heading("on the GPU");
    for (const Holder& holder : holders.of_gpus) {
      if (mine(holder)) {
        line_of(text, holder, held(holder.bytes));
      }
    }
  }
}

void shared_files(std::string& text, const Holders& holders) {
  if (holders.shared.empty()) {
    return;
  }
  std::int64_t bytes = 0, left = 0;
  for (const SharedFile& file : holders.shared) {
    bytes += file.bytes;
    left += file.left_over ? file.bytes : 0;
  }
  text += fmt::format("\n/dev/shm: {}, {}{}\n", counted(static_cast<std::int64_t>(holders.shared.size()), "file"),
                      bytes_text(bytes),
                      left > 0 ? fmt::format("; {} of it left over: nobody has the file open", bytes_text(left)) : "");
  for (std::size_t i = 0; i < std::min<std::size_t>(holders.shared.size(), 5); ++i) {
    const SharedFile& file = holders.shared[i];
    text += fmt::format("  {:>10} {:>8}  {}\n", bytes_text(file.bytes),
                        file.pids.empty() ? "-" : fmt::format("{}", file.pids.front()),
                        cut_text(printable(file.path), kCommandWidth));
  }
}

}  // namespace

std::string age_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds);
  if (s >= 86400) {
    return fmt::format("{} d {} h", s / 86400, s / 3600 % 24);
  }
  return s >= 3600 ? fmt::format("{} h {} min", s / 3600, s / 60 % 60)
         : s >= 60 ? fmt::format("{} min", s / 60)
                   : fmt::format("{} s", s);
}

std::string holders_text(const Holders& holders) {
  std::string text;
  gpus(text, holders);
  if (!holders.runs.empty()) {
    text += "\nStoker's runs\n";
    for (const Holder& run : holders.runs) {
      text += fmt::format("  pid {}, {}, {:.1f} cores, {}: {}\n", run.pid, age_text(run.process->age_seconds),
                          busy_cores(*run.process), gib(run.process->times.resident_bytes),
                          printable(run.process->run_folder));
    }
  }
  if (!holders.leftovers.empty()) {
    text += "\nworkers and holders to look at\n" + heading("");
    for (const Holder& holder : holders.leftovers) {
      line_of(text, holder, "");
    }
  }
  shared_files(text, holders);
  text += fmt::format("\nmachine: {} cores to use, {} of {} of memory free\n", holders.cores,
                      gib(holders.available_bytes), gib(holders.memory_bytes));
  if (!holders.busiest.empty()) {
    text += heading("cores");
    for (const Holder& holder : holders.busiest) {
      line_of(text, holder, fmt::format("{:.2f}", busy_cores(*holder.process)));
    }
  }
  for (const std::string& pitfall : holders.pitfalls) {
    text += note(pitfall);
  }
  if (!holders.all_visible) {
    text += note("the open files of some processes may only be seen by their owner or root; run it as root to see all");
  }
  return text;
}

}  // namespace stoker::study
