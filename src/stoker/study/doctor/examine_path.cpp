// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/observe/doctor/run_facts.h"
#include "stoker/observe/doctor/script_facts.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "stoker/observe/trace/read_trace.h"
#include "stoker/study/doctor/report.h"
#include "stoker/study/trace/report.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

Facts facts_of_trace(const std::filesystem::path& path) {
  std::vector<observe::trace::Trace> traces = observe::trace::read_traces(path);
  if (traces.size() != 1) {
    fail<DataError>("stoker.doctor", "{}: holds {} traces; give the one of a single rank", printable(path.native()),
                    traces.size());
  }
  const observe::trace::TraceFacts facts(std::move(traces[0]));
  Facts told = trace_facts(facts);
  told.damage = damage_words(facts.trace.damage);
  return told;
}

}  // namespace

Examined examine_path(const std::filesystem::path& path) {
  std::error_code error;
  const bool trace = std::filesystem::is_regular_file(path, error);
  Facts facts = trace ? facts_of_trace(path) : is_script_record(path) ? script_facts(path) : run_facts(path);
  Diagnosis diagnosis = examine(facts);
  return {std::move(facts), std::move(diagnosis)};
}

}  // namespace stoker::study
