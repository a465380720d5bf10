// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "stoker/base/fmt.h"
#include "stoker/observe/doctor/run_facts.h"
#include "stoker/observe/doctor/script_facts.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "stoker/observe/trace/read_trace.h"
#include "stoker/study/doctor/report.h"
#include "stoker/study/trace/report.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

// Of one program, or of the ranks of a training.
Facts facts_of_traces(const std::filesystem::path& path) {
  std::vector<std::unique_ptr<observe::trace::TraceFacts>> ranks;
  for (observe::trace::Trace& each : observe::trace::read_traces(path)) {
    ranks.push_back(std::make_unique<observe::trace::TraceFacts>(std::move(each)));
  }
  Facts told = ranks.size() == 1 ? trace_facts(*ranks[0]) : ranks_trace_facts(ranks);
  for (const auto& rank : ranks) {
    for (const std::string& each : damage_words(rank->trace.damage)) {
      told.damage.push_back(ranks.size() == 1 ? each : fmt::format("{}: {}", rank->trace.file, each));
    }
  }
  return told;
}

bool is_run(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path / "metrics.jsonl", error) || std::filesystem::exists(path / "plan.json", error);
}

// A folder with files that could be traces.
bool holds_traces(const std::filesystem::path& path) {
  std::error_code error;
  return std::ranges::any_of(std::filesystem::directory_iterator(path, error), [](const auto& entry) {
    const std::string name = entry.path().filename().native();
    return name.ends_with(".json") || name.ends_with(".json.gz");
  });
}

}  // namespace

Examined examine_path(const std::filesystem::path& path) {
  std::error_code error;
  const bool script = is_script_record(path);
  const bool trace = std::filesystem::is_regular_file(path, error) || (!script && !is_run(path) && holds_traces(path));
  Facts facts = trace ? facts_of_traces(path) : script ? script_facts(path) : run_facts(path);
  Diagnosis diagnosis = examine(facts);
  return {std::move(facts), std::move(diagnosis)};
}

}  // namespace stoker::study
