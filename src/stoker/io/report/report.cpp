// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/utc.h"
#include "stoker/io/report/artifacts.h"
#include "stoker/io/report/metrics_table.h"
#include "stoker/io/report/page.h"
#include "stoker/io/report/run_json.h"
#include "stoker/io/report/run_log.h"
#include "stoker/io/report/verdict.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 2000;      // per curve
constexpr std::size_t kMostNumbers = 100'000;  // over all curves of a page: about 1 MB
constexpr std::size_t kFewestPoints = 8;
constexpr std::size_t kMostRuns = 50;

// All curves of all runs share the limit of a page.
void fit_page(std::vector<ReportedRun>& runs) {
  const auto numbers = [&](std::size_t most) {
    std::size_t sum = 0;
    for (const ReportedRun& run : runs) {
      const std::size_t steps = std::min(most, run.metrics.steps.buckets().size());
      sum += steps * (3 + 3 * (MetricsTable::kFirstScalar + run.metrics.scalars.size()));
      for (const EvaluatedSeries& series : run.metrics.evaluated) {
        sum += std::min(most, series.points.buckets().size()) * 5;
      }
    }
    return sum;
  };
  std::size_t most = kMostPoints;
  while (most > kFewestPoints && numbers(most) > kMostNumbers) {
    most /= 2;
  }
  for (ReportedRun& run : runs) {
    run.metrics.steps.limit(most);
    for (EvaluatedSeries& series : run.metrics.evaluated) {
      series.points.limit(most);
    }
  }
}

ReportedRun read_run(const fs::path& folder) {
  ReportedRun run{read_run_log(folder), {}, {}};
  run.metrics = read_metrics_table(folder / "metrics.csv", kMostPoints);
  if (run.metrics.damaged > 0) {
    run.log.unread.push_back(fmt::format("metrics.csv: {} row(s) could not be read", run.metrics.damaged));
  }
  if (run.metrics.left_out > 0) {
    run.log.unread.push_back("metrics.csv: more columns or metrics than a page can show");
  }
  run.verdict = verdict(run.log, run.metrics);
  return run;
}

}  // namespace

std::string report_page(const std::vector<std::filesystem::path>& runs) {
  if (runs.empty()) {
    fail<ConfigError>("io.report", "no run given; give at least one run folder");
  }
  if (runs.size() > kMostRuns) {
    fail<ConfigError>("io.report", "{} runs are too many for one page; give at most {}", runs.size(), kMostRuns);
  }
  std::vector<ReportedRun> all;
  for (const fs::path& folder : runs) {
    all.push_back(read_run(folder));
  }
  fit_page(all);
  Json data{{"format", 1}, {"made", utc_now("%Y-%m-%d %H:%M UTC")}, {"runs", Json::array()}};
  for (const ReportedRun& run : all) {
    data["runs"].push_back(run_json(run));
  }
  if (all.size() > 1) {
    data["differences"] = plan_differences(all);
    return report_page(fmt::format("{} runs compared", all.size()), "", data);
  }
  ReportedRun& run = all.front();
  data["artifacts"] = read_artifacts(runs.front() / "artifacts", run.log.unread);
  data["runs"][0]["unread"] = run.log.unread;
  data["runs"][0]["config"] = run.log.config;
  data["runs"][0]["monitor"] = run.log.monitor.json();
  return report_page(run.log.name, run.verdict.text(), data);
}

std::filesystem::path write_report(const std::filesystem::path& run) {
  const std::string text = report_page({run});
  const fs::path path = run / "report.html";
  write_file_atomically(path, text);
  return path;
}

}  // namespace stoker::io
