// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_end.h"

#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/report/report.h"
#include "stoker/job/judge.h"
#include "stoker/job/process.h"
#include "stoker/observe/feeding.h"

namespace stoker::job {
namespace {

std::string outcome_name(train::LoopEnd end) {
  switch (end) {
    case train::LoopEnd::kDone: return "done";
    case train::LoopEnd::kStopped: return "stopped";
    case train::LoopEnd::kEarlyStop: return "early_stop";
    case train::LoopEnd::kTimeUp: return "time_up";
  }
  return "";
}

// The run's page, from what the logs have by now. A page that cannot be made ends nothing.
void make_report(const RunFolder& run, io::EventBus& bus) {
  try {
    bus.flush();
    io::write_report(run.path());
  } catch (const Error& error) {
    bus.emit(core::Finding{fmt::format("there is no report.html of this run: {}", error.what())});
  }
}

// The best weights on the test split, unless that is interrupted, which leaves the run where it can be resumed.
void judge(Outcome& outcome, const train::LoopParts& parts, const Setup& setup, const RunFolder& run,
           const std::function<bool()>& give_up) {
  auto metrics = judge_best(run.path(), setup, parts.progress, parts.events, give_up);
  if (metrics) {
    outcome.test = std::move(*metrics);
  } else if (parts.stop) {
    outcome.end = train::LoopEnd::kStopped;
    outcome.undone = "the evaluation of the best checkpoint";
  } else {
    const std::string name = printable(run.path().native());
    parts.events.emit(core::Finding{
        fmt::format("time= was up before the best checkpoint was judged; `stoker eval {}` does that", name)});
  }
}

// For the report: what data waited for over the whole run.
void tell_if_starved(const core::Fed& fed, io::EventBus& bus) {
  const observe::Feeding feeding = observe::explain(fed);
  if (feeding.late && !feeding.stage.empty()) {
    bus.emit(core::Finding{feeding.words});
  }
}

}  // namespace

Outcome run_and_test(const train::LoopParts& parts, const Setup& setup, const RunCheckpoints& checkpoints,
                     const RunFolder& run, io::EventBus& bus, std::int64_t last_step,
                     const std::function<bool()>& give_up) {
  const train::Progress& progress = parts.progress;
  Outcome outcome;
  outcome.end = train::run_loop(parts, setup.plan, last_step);
  tell_if_starved(parts.feed.total(progress.step), bus);
  outcome.best = checkpoints.best();
  if (outcome.end != train::LoopEnd::kStopped) {
    judge(outcome, parts, setup, run, give_up);
  } else if (parts.evaluate && train::owes_evaluation(progress, setup.plan, last_step)) {
    outcome.undone = fmt::format("the validation after step {}", progress.step);
  }
  outcome.step = progress.step;
  outcome.seconds = progress.seconds;
  return outcome;
}

Outcome run_to_its_end(const train::Progress& progress, const RunFolder& run, io::EventBus& bus,
                       const std::function<Outcome()>& work) {
  Outcome outcome;
  try {
    outcome = typed(work);
  } catch (const std::exception& error) {
    bus.emit(core::RunFinished{progress.step, "failed", error.what(), progress.seconds});
    make_report(run, bus);
    throw;
  }
  const std::string text =
      outcome.undone.empty() ? "" : fmt::format("{} is not done, a resume begins with it", outcome.undone);
  bus.emit(core::RunFinished{outcome.step, outcome_name(outcome.end), text, outcome.seconds});
  make_report(run, bus);
  return outcome;
}

}  // namespace stoker::job
