// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/report/page_frame.h"
#include "stoker/observe/trace/read_trace.h"
#include "stoker/study/doctor/json_parts.h"
#include "stoker/study/page_files.h"
#include "stoker/study/trace/json_parts.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostColumns = 160;    // periods that are drawn; more are joined
constexpr std::size_t kMostEvents = 12'000;  // of a time line: a file of about a megabyte

// Seconds per part of each period, or of a few that follow each other.
Json columns_of(const Facts& facts) {
  Json columns = Json::array();
  const std::size_t joined = (facts.periods.size() + kMostColumns - 1) / kMostColumns;
  for (std::size_t begin = 0; begin < facts.periods.size(); begin += joined) {
    std::int64_t steps = 0;
    double seconds = 0;
    std::map<std::string, double> parts;
    const std::size_t end = std::min(begin + joined, facts.periods.size());
    for (std::size_t i = begin; i < end; ++i) {
      const Period& period = facts.periods[i];
      steps += period.steps;
      seconds += period.seconds;
      for (const auto& [name, times] : period.parts) {
        parts[printable(name)] += times.seconds;
      }
    }
    columns.push_back(
        {{"last_step", facts.periods[end - 1].last_step}, {"steps", steps}, {"seconds", seconds}, {"parts", parts}});
  }
  return columns;
}

// The parts of time that a finding's evidence names: "fetch: 61 % of the time (...)".
Json parts_of(const Found& found, const Facts& facts) {
  std::set<std::string> parts;
  for (const std::string& each : found.finding.evidence) {
    const std::string part = each.substr(0, each.find(':'));
    if (facts.share(part).value_or(0) > 0) {
      parts.insert(part);
    }
  }
  return parts;
}

}  // namespace

std::string diagnosis_page(const Examined& examined, const std::filesystem::path& path) {
  using namespace page_files;
  const bool trace = examined.facts.source == Source::kTrace;
  Json json = diagnosis_object(examined);
  json["file"] = printable(path.native());
  json["columns"] = columns_of(examined.facts);
  json["parts"] = Json::array();
  for (const Found& each : examined.diagnosis.found) {
    if (each.worth_saying()) {
      json["parts"].push_back(parts_of(each, examined.facts));
    }
  }
  if (trace) {
    std::vector<observe::trace::Trace> traces = observe::trace::read_traces(path);
    json["words"] = cause_words();
    const auto row = static_cast<std::size_t>(examined.facts.figure("ranks.row").value_or(0));
    json["line"] = time_line(observe::trace::TraceFacts(std::move(traces.at(row))), -1, kMostEvents);
  }
  const std::string title =
      printable(trace || examined.facts.job.empty() ? path.filename().native() : examined.facts.job);
  const std::string verdict = printable(examined.diagnosis.verdict),
                    style = std::string(kTraceCss) + std::string(kDoctorCss);
  return io::make_page({.title = title,
                        .kind = "doctor",
                        .verdict = verdict,
                        .style = style,
                        .body = kDoctorHtml,
                        .scripts = {kTracePartsJs, kTimeLineJs, kDoctorJs}},
                       json);
}

}  // namespace stoker::study
