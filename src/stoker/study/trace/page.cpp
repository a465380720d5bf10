// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/report/page_frame.h"
#include "stoker/study/page_files.h"
#include "stoker/study/trace/json_parts.h"

namespace stoker::study {
namespace {

using namespace observe::trace;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostEvents = 12'000;  // drawn at once, over all traces of a page: a file of about a megabyte

std::string file_name(const std::string& path) { return printable(path.substr(path.rfind('/') + 1)); }

// The facts in a sentence; no advice.
std::string summary(const TraceFacts& facts) {
  if (facts.devices.empty()) {
    return facts.host_idle ? fmt::format("No device worked; the main thread spent {:.0f} % of the time in operators.",
                                         facts.host_idle->window > 0
                                             ? 100 - 100 * ms(facts.host_idle->total) / ms(facts.host_idle->window)
                                             : 0)
                           : "No device worked.";
  }
  const DeviceFactsOfTrace& device = facts.devices.front();
  const DeviceUse& use = device.time.steps;
  std::string text = fmt::format("Device {} worked {:.0f} % of the time.", device.time.device,
                                 use.total() > 0 ? 100 * ms(use.busy()) / ms(use.total()) : 0);
  std::size_t most = 0;
  for (std::size_t i = 0; i < kDoings; ++i) {
    most = device.idle.by_doing[i] > device.idle.by_doing[most] ? i : most;
  }
  if (device.idle.total * 1000 <= use.total()) {
    return text;
  }
  const double share = 100 * ms(device.idle.by_doing[most]) / ms(device.idle.total);
  const auto doing = static_cast<Doing>(most);
  return doing == Doing::kUnattributed
             ? text + fmt::format(" For {:.0f} % of its idle time the trace names no cause.", share)
             : text + fmt::format(" Of its idle time, {:.0f} % went to: {}.", share, doing_name(doing));
}

}  // namespace

Json cause_words() {
  Json words = Json::object();
  for (std::size_t i = 0; i < kDoings; ++i) {
    words[std::string(doing_key(static_cast<Doing>(i)))] = doing_name(static_cast<Doing>(i));
  }
  return words;
}

std::string trace_page(const Traces& traces, const TraceReportOptions& options) {
  using namespace page_files;
  Json json = traces_object(traces);
  json["words"] = cause_words();
  json["lines"] = Json::array();
  for (const auto& each : traces) {
    json["lines"].push_back(time_line(*each, options.step, std::max<std::size_t>(kMostEvents / traces.size(), 400)));
  }
  const std::string title =
      traces.size() == 1 ? file_name(traces.front()->trace.file) : fmt::format("{} traces", traces.size());
  const std::string text = summary(*traces.front());
  return io::make_page({.title = title,
                        .kind = "trace",
                        .verdict = text,
                        .style = kTraceCss,
                        .body = kTraceHtml,
                        .scripts = {io::page_files::kDygraphJs, kTracePartsJs, kTimeLineJs, kTraceJs}},
                       json);
}

std::string comparison_page(const TraceFacts& before, const TraceFacts& after) {
  using namespace page_files;
  const std::string title = file_name(before.trace.file) + " → " + file_name(after.trace.file);
  const std::string text = before.steps.empty() || after.steps.empty()
                               ? "One of the traces marks no steps: times are of the whole traces."
                               : fmt::format("A step took {:.1f} ms before and {:.1f} ms after.",
                                             ms(before.mean_step()), ms(after.mean_step()));
  return io::make_page({.title = title,
                        .kind = "trace",
                        .verdict = text,
                        .style = kTraceCss,
                        .body = kCompareHtml,
                        .scripts = {kTracePartsJs, kCompareJs}},
                       comparison_object(before, after));
}

}  // namespace stoker::study
