// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "stoker/base/bytes_text.h"
#include "stoker/base/file.h"
#include "stoker/base/thousands.h"
#include "stoker/job/step_chart.h"
#include "stoker/study/trace/text_parts.h"

namespace stoker::study {
namespace {

using namespace observe::trace;

constexpr std::size_t kBar = 20, kNamesOfCause = 3;
constexpr std::size_t kNameWidth = 62;

std::string device_title(const Trace& trace, int device) {
  for (const DeviceFacts& known : trace.devices) {
    if (known.id == device && !known.name.empty()) {
      return fmt::format("device {} ({})", device, printable(known.name));
    }
  }
  return fmt::format("device {}", device);
}

}  // namespace

std::string head_text(const TraceFacts& facts) {
  const Trace& trace = facts.trace;
  std::string text = fmt::format("{}: {} events, {:.1f} MB of JSON{}\n", printable(trace.file),
                                 thousands(static_cast<std::int64_t>(trace.events.size())),
                                 static_cast<double>(trace.json_bytes) * 1e-6,
                                 trace.rank < 0 ? "" : fmt::format(", rank {} of {}", trace.rank, trace.world_size));
  for (const std::string& word : damage_words(trace.damage)) {
    text += "note: " + word + "\n";
  }
  if (facts.steps.empty()) {
    text += fmt::format("The program marks no steps (\"ProfilerStep#1\"); the figures are of the whole {}.\n",
                        time_text(whole_time(trace).length()));
  } else {
    std::vector<std::int64_t> lengths;
    for (const Step& step : facts.steps) {
      lengths.push_back(step.time.length());
    }
    std::ranges::sort(lengths);
    text +=
        fmt::format("{} step{}: mean {}, median {}, longest {}\n", lengths.size(), lengths.size() == 1 ? "" : "s",
                    time_text(facts.mean_step()), time_text(lengths[lengths.size() / 2]), time_text(lengths.back()));
  }
  return text;
}

namespace {

std::string line(const std::string& name, std::int64_t part, std::int64_t whole, const std::string& more = "") {
  return fmt::format("  {:<24} {}  {:<{}} {:>9}{}\n", name, percent(part, whole),
                     job::bar_text(share(part, whole), kBar), kBar, time_text(part), more);
}

std::string idle_text(const IdleTime& idle) {
  std::vector<Doing> order;
  for (std::size_t i = 0; i < kDoings; ++i) {
    if (idle.by_doing[i] > 0) {
      order.push_back(static_cast<Doing>(i));
    }
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](Doing doing) { return idle.of(doing); });
  std::string text;
  for (const Doing doing : order) {
    text += line("  " + std::string(doing_name(doing)), idle.of(doing), idle.total);
    std::size_t shown = 0;
    for (const IdleName& name : idle.names) {
      const bool large = name.time * 50 >= idle.total;  // 2 %
      if (name.doing == doing && !name.name.empty() && large && shown++ < kNamesOfCause) {
        text += fmt::format("        {:>9}  {:>7}x  {}\n", time_text(name.time), thousands(name.times),
                            fitted(name.name, kNameWidth));
      }
    }
  }
  return text;
}

std::string use_text(const DeviceUse& use) {
  const std::int64_t total = use.total(), communication = use.time(kCommunicating), copies = use.time(kCopying);
  std::string text = line("busy", use.busy(), total);
  text += line("  compute", use.time(kComputing), total);
  if (communication > 0) {
    const std::int64_t exposed = communication - use.time(kComputing | kCommunicating);
    text += line("  communication", communication, total, fmt::format(", of these {} exposed", time_text(exposed)));
  }
  if (copies > 0) {
    text += line("  copies and fills", copies, total,
                 fmt::format(", of these {} alone", time_text(use.by_state[kCopying])));
  }
  return text + line("idle", use.idle(), total);
}

std::string device_text(const TraceFacts& facts, const DeviceFactsOfTrace& device) {
  const DeviceUse& use = facts.steps.empty() ? device.time.whole : device.time.steps;
  std::string text =
      fmt::format("\n{}, {}: {}\n", device_title(facts.trace, device.time.device),
                  facts.steps.empty() ? "from its first to its last work" : "during the steps", time_text(use.total()));
  text += use_text(use);
  if (!facts.steps.empty()) {
    text +=
        fmt::format("  (from its first to its last work, {}: busy {:.1f} %)\n", time_text(device.time.whole.total()),
                    100 * share(device.time.whole.busy(), device.time.whole.total()));
  }
  if (device.idle.total > 0) {
    text += "idle time, by what the host did or what was waited for\n" + idle_text(device.idle);
  }
  if (device.time.streams.size() > 1) {
    text += "streams\n";
    for (const StreamUse& stream : device.time.streams) {
      text += fmt::format("  stream {:<6} busy {:>9}, alone {:>9}, {} pieces of work\n", stream.stream,
                          time_text(stream.busy), time_text(stream.alone), thousands(stream.pieces));
    }
  }
  return text;
}

std::string work_text(const TraceFacts& facts, std::size_t rows) {
  std::int64_t whole = 0;
  for (const WorkSum& sum : facts.work) {
    whole += sum.total;
  }
  std::string text = facts.work.empty() ? "" : "\nwork of devices\n       time    share      times      mean\n";
  for (std::size_t i = 0; i < std::min(rows, facts.work.size()); ++i) {
    const WorkSum& sum = facts.work[i];
    text += fmt::format("  {:>9}  {} {:>10} {:>9}  {}\n", time_text(sum.total), percent(sum.total, whole),
                        thousands(sum.times), time_text(sum.total / std::max<std::int64_t>(sum.times, 1)),
                        fitted(sum.name, kNameWidth));
  }
  return text;
}

std::string operator_text(const TraceFacts& facts, std::size_t rows) {
  if (facts.operators.empty()) {
    return "";
  }
  std::string text = "\noperators, time of their own\n     device       host      times\n";
  for (std::size_t i = 0; i < std::min(rows, facts.operators.size()); ++i) {
    const OperatorSum& sum = facts.operators[i];
    text += fmt::format("  {:>9}  {:>9} {:>10}  {}{}\n", facts.devices.empty() ? "-" : time_text(sum.device_self),
                        time_text(sum.host_self), thousands(sum.times), fitted(sum.name, 40),
                        sum.shapes.empty() ? "" : " " + fitted(sum.shapes, 60));
  }
  return text;
}

std::string path_text(const CriticalPath& path) {
  if (!path.found) {
    return "";
  }
  return fmt::format(
      "\ncritical path: {}: host {}, device {}, launch and queue delays {}; {} between its calls are not recorded\n",
      time_text(path.length), time_text(path.host), time_text(path.device), time_text(path.delay),
      time_text(std::max<std::int64_t>(path.uncounted, 0)));
}

std::string memory_text(const TraceFacts& facts) {
  std::string text;
  for (const MemoryCurve& curve : facts.memory) {
    text += fmt::format("\nmemory of {}: peak {}{}, {} allocations\n",
                        curve.device < 0 ? "the host" : device_title(facts.trace, curve.device), bytes_text(curve.peak),
                        curve.from_begin ? " more than at the trace's begin" : "", thousands(curve.allocations));
  }
  return text;
}

std::string facts_text(const TraceFacts& facts, const TraceReportOptions& options) {
  std::string text = head_text(facts);
  for (const DeviceFactsOfTrace& device : facts.devices) {
    text += device_text(facts, device);
  }
  if (facts.host_idle) {
    const IdleTime& idle = *facts.host_idle;
    text += fmt::format("\nNo device worked. The main thread, {}:\n", time_text(idle.window));
    text += line("in operators", idle.window - idle.total, idle.window) + line("outside", idle.total, idle.window);
    text += idle.total > 0 ? "time outside operators\n" + idle_text(idle) : "";
  }
  return text + path_text(facts.path) + work_text(facts, options.rows) + operator_text(facts, options.rows) +
         memory_text(facts);
}

}  // namespace

std::string trace_text(const Traces& traces, const TraceReportOptions& options) {
  std::string text;
  for (const auto& each : traces) {
    text += (text.empty() ? "" : "\n") + facts_text(*each, options);
  }
  return traces.size() > 1 ? text + ranks_text(ranks_facts(traces)) : text;
}

}  // namespace stoker::study
