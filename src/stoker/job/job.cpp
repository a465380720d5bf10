// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/job.h"

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/core/communicator.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/device/throttled_memory.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/cut_metrics.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/io/report/report.h"
#include "stoker/job/judge.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/machine_record.h"
#include "stoker/job/process.h"
#include "stoker/job/quarantine.h"
#include "stoker/job/resumption.h"
#include "stoker/job/saved_plan.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/job/weight_histograms.h"
#include "stoker/observe/feeding.h"
#include "stoker/optim/schedule.h"
#include "stoker/train/evaluate.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job";

optim::ScheduleOptions schedule_of(const train::Plan& plan, std::int64_t total_steps) {
  optim::ScheduleOptions options;
  options.kind = optim::schedule_kind(plan.schedule);
  options.lr = plan.peak_lr();
  options.total_steps = total_steps;
  options.min_factor = plan.lr_end;
  const double steps = plan.warmup < 1 ? plan.warmup * static_cast<double>(total_steps) : plan.warmup;
  options.warmup_steps = std::min(static_cast<std::int64_t>(std::llround(steps)), total_steps - 1);
  options.step_size = std::max<std::int64_t>(1, total_steps / 3);
  optim::check(options);
  return options;
}

std::string outcome_name(train::LoopEnd end) {
  switch (end) {
    case train::LoopEnd::kDone: return "done";
    case train::LoopEnd::kStopped: return "stopped";
    case train::LoopEnd::kEarlyStop: return "early_stop";
    case train::LoopEnd::kTimeUp: return "time_up";
  }
  return "";
}

// Makes the folder of a fresh run; the plan is written each time, since a resume may change it.
const RunFolder& open_run(std::optional<RunFolder>& run, const Request& request, const train::Plan& plan,
                          const tasks::Task& task) {
  if (!run) {
    run = RunFolder::create(request.run.empty() ? default_run_name(request.data, plan.model) : request.run);
    write_file_atomically(run->config(), request_to_toml(request));
    for (const auto& [name, text] : task.records()) {
      std::error_code ignored;  // writing says what is wrong
      fs::create_directories(run->path() / "artifacts", ignored);
      write_file_atomically(run->path() / "artifacts" / name, text);
    }
  }
  write_file_atomically(run->plan(), train::plan_to_json(plan));
  return *run;
}

// Where the run was resumed: to the state of its checkpoint, which is then let go.
void go_on(Session& session, std::optional<io::Checkpoint>& resumed, const RunFolder& run) {
  if (resumed) {
    session.load(*resumed);
    io::cut_metrics(run.path(), session.progress().step, session.progress().evaluated_step);
    resumed.reset();
  }
}

void add_sinks(io::EventBus& bus, std::vector<std::unique_ptr<core::EventSink>> sinks, const RunFolder& run,
               const std::string& tensorboard) {
  bus.add(std::make_unique<io::MetricsCsv>(run.path()), /*awaited=*/true);
  bus.add(std::make_unique<io::MetricsJsonl>(run.path()), /*awaited=*/true);
  if (tensorboard != "off") {
    bus.add(std::make_unique<io::TensorBoardLog>(run.path()));
  }
  for (auto& sink : sinks) {
    bus.add(std::move(sink));
  }
}

void announce(io::EventBus& bus, const RunFolder& run, const Setup& setup, Session& session, std::int64_t last_step) {
  const train::Plan& plan = setup.plan;
  const std::int64_t epoch_steps = train::steps_per_epoch(plan, setup.task->size(tasks::Split::kTrain));
  const std::int64_t epochs = (last_step + epoch_steps - 1) / epoch_steps;  // steps= may overrule epochs=
  bus.emit(core::RunStarted{run.path().native(), run_title(setup), plan.rows(), session.step().scalar_names(), epochs,
                            epoch_steps, session.progress().step, last_step});
  for (const std::string& finding : setup.task->findings()) {
    bus.emit(core::Finding{finding});
  }
}

// Of the whole run: where nothing was better since it was resumed, what the best checkpoint says.
std::vector<core::MetricValue> best_of_run(const Session& session, const io::CheckpointStore& store) {
  if (!session.best_metrics().empty() || !store.has("best")) {
    return session.best_metrics();
  }
  const ModelCard card = card_from_json(io::load_info(store.path("best")), store.path("best"));
  return std::isnan(card.metric_value) ? std::vector<core::MetricValue>()
                                       : std::vector<core::MetricValue>{{card.metric, card.metric_value}};
}

// What the loop evaluates with; empty without a validation split.
std::function<std::vector<core::MetricValue>()> validation(const Setup& setup, Session& session, io::EventBus& bus,
                                                           const std::function<bool()>& give_up) {
  const std::int64_t size = setup.task->size(tasks::Split::kVal);
  if (size == 0) {
    return {};
  }
  return [&session, &bus, give_up, size] {
    return session.evaluate(tasks::Split::kVal, {bus, {session.progress().step, "val", 0, size}, give_up});
  };
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

// The loop, then the test split with the best weights; the sinks hear how it ended, also where it failed.
Outcome run_and_test(const train::LoopParts& parts, const Setup& setup, const Session& session,
                     const io::CheckpointStore& store, const RunFolder& run, io::EventBus& bus, std::int64_t last_step,
                     const std::function<bool()>& give_up) {
  const train::Progress& progress = parts.progress;
  Outcome outcome;
  try {
    with_typed_errors([&] {
      outcome.end = train::run_loop(parts, setup.plan, last_step);
      tell_if_starved(parts.feed.total(progress.step), bus);
      outcome.best = best_of_run(session, store);
      if (outcome.end != train::LoopEnd::kStopped) {
        judge(outcome, parts, setup, run, give_up);
      }
    });
  } catch (const std::exception& error) {
    bus.emit(core::RunFinished{progress.step, "failed", error.what(), progress.seconds});
    make_report(run, bus);
    throw;
  }
  outcome.step = progress.step;
  outcome.seconds = progress.seconds;
  bus.emit(core::RunFinished{outcome.step, outcome_name(outcome.end), "", outcome.seconds});
  make_report(run, bus);
  return outcome;
}

std::string text_of(const core::BadSample& bad) {
  const std::string instead = bad.replaced_by.empty() ? "left out" : bad.replaced_by + " stands in for it";
  return fmt::format("{}: {}; {}", bad.name, bad.reason, instead);
}

// To what sources have to say of their samples, on threads of their own.
void listen(Setup& setup, Quarantine& quarantine, const std::atomic<std::int64_t>& step, io::EventBus& bus) {
  setup.bad_samples = [&](const core::BadSample& bad) {
    if (quarantine.add(bad)) {
      bus.emit(core::FaultSurvived{step, "bad_sample", text_of(bad)});
    }
  };
  setup.remarks = [&](const std::string& remark) { bus.emit(core::Finding{remark}); };
}

}  // namespace

struct Job::State {
  Request request;
  Setup setup;
  std::optional<RunFolder> run;
  std::optional<io::Checkpoint> resumed;
};

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::prepare(Request request, const Say& say) {
  auto state = std::make_unique<State>();
  if (request.plan_file.empty()) {
    state->setup = set_up(request, nullptr, say);
  } else {
    if (!request.options.all().empty()) {
      fail<ConfigError>(kWhere, "plan= repeats a plan as it is; leave out {}=", request.options.all().begin()->first);
    }
    const train::Plan plan = read_plan(request.plan_file);
    state->setup = set_up(request, &plan, say);
  }
  state->request = std::move(request);
  return Job(std::move(state));
}

Job Job::resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say) {
  auto state = std::make_unique<State>();
  state->run = RunFolder::open(path);
  try {
    state->request = make_request(state->run->config(), {});
  } catch (const ConfigError& error) {  // a task or a model that is not known here
    fail<ConfigError>(kWhere, "{}; where a program of its own made this run, that program resumes it", error.what());
  }
  train::Plan plan = read_plan(state->run->plan());
  for (const std::string& change : changes) {
    change_plan(plan, change);
  }
  const io::CheckpointStore store(state->run->checkpoints());
  if (!store.has("last")) {
    fail<CheckpointError>(
        kWhere,
        "{}: has no checkpoint yet: it ended before the first one was saved (save_every=, or an epoch); "
        "start again with `stoker train --config {}`",
        printable(path.native()), printable(state->run->config().native()));
  }
  state->resumed = store.load("last");
  const std::string weights = std::exchange(plan.weights, "");  // what became of them is in the checkpoint
  state->setup = set_up(state->request, &plan, say);
  state->setup.plan.weights = weights;
  const fs::path last = state->run->checkpoints() / "last";
  read_card(last, [&] { check_same_data(*state->resumed, last, *state->setup.task, path); });
  train::Progress progress;
  progress.load_state(state->resumed->state);
  const std::string over = nothing_left(progress, plan, state->setup.task->size(tasks::Split::kTrain), path);
  if (!over.empty()) {
    say(over);
  }
  return Job(std::move(state));
}

const train::Plan& Job::plan() const { return state_->setup.plan; }
fs::path Job::run_path() const { return state_->run ? state_->run->path() : fs::path(); }

std::vector<std::string> Job::facts() const { return describe_setup(state_->setup); }
const std::vector<std::string>& Job::findings() const { return state_->setup.task->findings(); }

Outcome Job::train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop) {
  Setup& setup = state_->setup;
  const train::Plan& plan = setup.plan;
  const RunFolder& run = open_run(state_->run, state_->request, plan, *setup.task);
  Session session(setup);
  go_on(session, state_->resumed, run);
  record_machine(run.path(), setup.device, session.progress().step);
  io::CheckpointStore store(run.checkpoints());
  const std::int64_t last_step = train::total_steps(plan, setup.task->size(tasks::Split::kTrain));
  const optim::ScheduleOptions schedule = schedule_of(plan, last_step);
  device::ScalarRing ring(setup.device, session.step().scalar_names().size());

  io::EventBus bus;
  add_sinks(bus, std::move(sinks), run, plan.tensorboard);
  announce(bus, run, setup, session, last_step);
  Quarantine quarantine(run.path());
  std::atomic<std::int64_t> step = session.progress().step;  // that is being taken
  listen(setup, quarantine, step, bus);
  const auto source = setup.training_source(session.progress().position);

  const auto save = [&](const char* kind) {
    bus.flush();  // a kill from here on leaves the rows of every step that the checkpoint has
    store.save(kind, session.checkpoint(kind));
    bus.emit(core::CheckpointSaved{session.progress().step, store.path(kind).native(), kind});
    if (plan.tensorboard == "histograms" && kind == std::string_view("last")) {
      bus.emit(weight_histograms(*setup.model, session.progress().step));
    }
  };
  const auto give_up = [&, watch = Stopwatch(), before = session.progress().seconds] {
    return stop || train::too_late_to_evaluate(plan, before + watch.seconds());
  };
  train::FeedWatch feed(*source, bus);
  const train::LoopParts parts{*source,
                               session.step(),
                               session.progress(),
                               ring,
                               bus,
                               feed,
                               [&](std::int64_t now) {
                                 step = now;
                                 return optim::lr_at(schedule, now);
                               },
                               validation(setup, session, bus, give_up),
                               [&] { write_exhibits(session.samples(), run.path(), session.progress().step, bus); },
                               save,
                               [&](std::int64_t index) { return setup.task->sample_name(index); },
                               device::throttled_memory(setup.device),
                               stop};
  return run_and_test(parts, setup, session, store, run, bus, last_step, give_up);
}

}  // namespace stoker::job
