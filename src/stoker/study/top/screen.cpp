// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/top/screen.h"

#include <algorithm>
#include <ranges>

#include "stoker/base/counted.h"
#include "stoker/base/cut_text.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/sparkline.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utc.h"
#include "stoker/study/ps/ps_text.h"

namespace stoker::study {
namespace {

constexpr double kGiB = 0x1p30;
constexpr int kFewest = 4;    // processes that are shown even if runs need the room
constexpr int kShortest = 4;  // lines of a run that has just begun; with fewer, none is shown

class Page {
 public:
  Page(int width, int height) : width_(std::max(width, 20)), height_(height) {}

  void add(const std::string& text, LineStyle style = LineStyle::kNormal) {
    if (left() > 0) {
      lines_.push_back({cut_text(text, static_cast<std::size_t>(width_)), style});
    }
  }
  // What is left of the width behind some characters.
  [[nodiscard]] int rest(std::size_t used) const { return std::max(width_ - static_cast<int>(used), 0); }
  [[nodiscard]] int left() const { return height_ - static_cast<int>(lines_.size()); }
  std::vector<ScreenLine> take() { return std::move(lines_); }

 private:
  int width_, height_;
  std::vector<ScreenLine> lines_;
};

std::optional<double> of(const FigureValues& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

// " 75 %", or "  ? " where the signal is missing.
std::string percent(std::optional<double> share) { return share ? fmt::format("{:3.0f} %", 100 * *share) : "  ? "; }

void plot(Page& page, const std::string& words, const History& history, double top) {
  const std::string begin = fmt::format("{:<34}", words);
  page.add(begin + sparkline(history, page.rest(34), top));
}

void machine(Page& page, const Watched& watched) {
  page.add(fmt::format("stoker top  {}", utc_now("%H:%M:%S UTC")), LineStyle::kTitle);
  const auto busy = of(watched.machine, "machine.busy_cores");
  plot(page, fmt::format("cores   {} in use, {} for us", busy ? fmt::format("{:.2f}", *busy) : "?", watched.cores),
       watched.busy_cores, watched.cores);
  if (watched.memory_bytes) {
    plot(page,
         fmt::format("memory  {:.1f} of {:.1f} GiB in use", (*watched.memory_bytes - *watched.available_bytes) / kGiB,
                     *watched.memory_bytes / kGiB),
         watched.memory, 1);
  }
}

void gpus(Page& page, const Watched& watched) {
  if (!watched.no_gpu.empty()) {
    page.add("GPU     " + watched.no_gpu, LineStyle::kFaint);
  }
  for (std::size_t i = 0; i < watched.gpus.size(); ++i) {
    const WatchedGpu& gpu = watched.gpus[i];
    const auto value = [&](const char* what) { return of(gpu.figures, fmt::format("gpu{}.{}", i, what)); };
    plot(page,
         fmt::format("GPU {}   {} busy{}", i, percent(value("busy_share")),
                     value("sm_busy_share") ? ", SMs " + percent(value("sm_busy_share")) : ""),
         gpu.busy, 1);
    std::string words = "        " + printable(gpu.facts.name);
    if (const auto used = value("memory_used_bytes"); used && gpu.facts.memory_bytes) {
      words += fmt::format("  {:.1f} of {:.0f} GiB", *used / kGiB, *gpu.facts.memory_bytes / kGiB);
    }
    if (const auto watts = value("power_watts")) {
      words += fmt::format("  {:.0f} W", *watts);
    }
    if (const auto clock = value("sm_clock_hz")) {
      words += fmt::format("  {:.0f} MHz", *clock / 1e6);
    }
    if (const auto celsius = value("temperature_celsius")) {
      words += fmt::format("  {:.0f} °C", *celsius);
    }
    const bool slowed = value("throttled_share").value_or(0) > 0;
    page.add(words + (slowed ? "  slowed down" : ""), slowed ? LineStyle::kWarning : LineStyle::kNormal);
  }
}

// "forward 40 %, backward 35 %, ...", the longest first.
std::string phases(const RunState& run) {
  auto sorted = run.phases;
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  std::string words;
  for (const auto& [name, seconds] : sorted) {
    if (seconds > 0.005 * run.phase_seconds) {
      words += fmt::format("{}{} {:.0f} %", words.empty() ? "" : ", ", name, 100 * seconds / run.phase_seconds);
    }
  }
  return words;
}

std::string threads(const RunState& run) {
  std::vector<std::pair<std::string, double>> groups;
  for (const auto& [name, value] : run.monitor) {
    if (name.starts_with("threads.") && name.ends_with(".cpu_cores")) {
      groups.emplace_back(name.substr(8, name.size() - 18), value);
    }
  }
  std::ranges::stable_sort(groups, std::greater(), &std::pair<std::string, double>::second);
  std::string words;
  for (const auto& [name, cores] : groups) {
    words += fmt::format("{}{} {:.2f}", words.empty() ? "" : ", ", name, cores);
  }
  return words;
}

void one_run(Page& page, const std::string& folder, const RunState& run) {
  page.add("");
  page.add(fmt::format("run {}{}", printable(folder), run.outcome.empty() ? "" : ", " + run.outcome), LineStyle::kHead);
  page.add("  " + run.title);
  plot(page,
       fmt::format("  {} of {}, {:.0f} samples/s", thousands(run.step),
                   run.last_step > 0 ? thousands(run.last_step) : "?", run.samples),
       run.speeds, 0);
  if (run.loss) {
    plot(page, fmt::format("  loss {:.4g}{}", *run.loss, run.evaluation.empty() ? "" : ", " + run.evaluation),
         run.losses, 0);
  }
  if (!run.phases.empty() && run.phase_seconds > 0) {
    page.add("  time    " + phases(run));
  }
  if (const std::string words = threads(run); !words.empty()) {
    page.add("  cores   " + words);
  }
  const auto wait = of(run.monitor, "threads.main.waiting_cores");
  const auto read = of(run.monitor, "process.read_bytes_per_second"),
             asked = of(run.monitor, "process.asked_bytes_per_second");
  if (asked && read) {
    page.add(
        fmt::format("  reads   {:.1f} MiB/s asked for, {:.1f} from disks{}", *asked / 0x1p20, *read / 0x1p20,
                    wait ? fmt::format("; the main thread waits {:.0f} % of the time for a core", 100 * *wait) : ""));
  }
  if (!run.finding.empty()) {
    page.add("  note    " + run.finding, LineStyle::kFaint);
  }
}

// The column of GPU memory is there if there are GPUs.
void processes(Page& page, const Watched& watched) {
  const auto gpu = [&](const std::string& text) { return watched.gpus.empty() ? "" : fmt::format("  {:>9}", text); };
  const auto gib = [](std::optional<double> bytes) { return bytes ? fmt::format("{:.1f} GiB", *bytes / kGiB) : ""; };
  page.add("");
  page.add(fmt::format("{:>8}  {:<10} {:>6}  {:>9}{}  {}", "pid", "user", "cores", "memory", gpu("on GPUs"), "command"),
           LineStyle::kHead);
  for (const WatchedProcess& each : watched.processes) {
    if (page.left() <= 0) {
      break;
    }
    page.add(fmt::format("{:>8}  {:<10} {:>6}  {:>9}{}  {}", each.process.pid,
                         cut_text(printable(each.process.user), 10),
                         each.cores ? fmt::format("{:.2f}", *each.cores) : "?", gib(each.process.times.resident_bytes),
                         gpu(gib(each.gpu_bytes)), printable(each.process.command)));
  }
}

}  // namespace

std::string sparkline(const History& values, int width, double top) {
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(std::max(width, 0)));
  const auto newest = values.end() - static_cast<std::ptrdiff_t>(count);
  return stoker::sparkline(std::ranges::subrange(newest, values.end()), {.top = top, .missing = "!"});
}

std::vector<ScreenLine> top_screen(const Watched& watched, int width, int height) {
  Page page(width, height);
  machine(page, watched);
  gpus(page, watched);
  std::size_t hidden = watched.runs.size();
  for (const auto& [folder, run] : watched.runs) {
    Page part(width, page.left() - kFewest);
    one_run(part, folder, run);
    std::vector<ScreenLine> lines = part.take();
    if (static_cast<int>(lines.size()) < kShortest) {
      break;
    }
    for (ScreenLine& line : lines) {
      page.add(line.text, line.style);
    }
    --hidden;
  }
  if (hidden > 0) {
    page.add(fmt::format("{} not shown: the screen is too small", counted(static_cast<std::int64_t>(hidden), "run")),
             LineStyle::kFaint);
  }
  processes(page, watched);
  return page.take();
}

}  // namespace stoker::study
