// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/job.h"

#include <atomic>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/device/throttled_memory.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/cut_metrics.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/job/judge.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/machine_record.h"
#include "stoker/job/process.h"
#include "stoker/job/resumption.h"
#include "stoker/job/run_checkpoints.h"
#include "stoker/job/run_end.h"
#include "stoker/job/run_schedule.h"
#include "stoker/job/saved_plan.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/job/source_listener.h"
#include "stoker/job/split_evaluation.h"
#include "stoker/observe/slow_steps.h"
#include "stoker/train/evaluate.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job";

// Makes the folder of a fresh run; the plan is written each time, since a resume may change it.
const RunFolder& open_run(std::optional<RunFolder>& run, const Request& request, const train::Plan& plan,
                          const tasks::ReadyTask& task) {
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
               const train::Plan& plan) {
  bus.add(std::make_unique<io::MetricsCsv>(run.path()), /*awaited=*/true);
  bus.add(std::make_unique<io::MetricsJsonl>(run.path()), /*awaited=*/true);
  if (plan.tensorboard != "off") {
    bus.add(std::make_unique<io::TensorBoardLog>(run.path()));
  }
  if (plan.device == "cpu") {
    bus.add(std::make_unique<observe::SlowSteps>(bus, plan.intra_op, device::involuntary_switches));
  }
  for (auto& sink : sinks) {
    bus.add(std::move(sink));
  }
}

// remark: on how the run goes on; may be empty.
void announce(io::EventBus& bus, const RunFolder& run, const Setup& setup, Session& session, std::int64_t last_step,
              const std::string& remark) {
  const train::Plan& plan = setup.plan;
  const std::int64_t epoch_steps = train::steps_per_epoch(plan, setup.task->size(tasks::Split::kTrain));
  const std::int64_t epochs = (last_step + epoch_steps - 1) / epoch_steps;  // steps= may overrule epochs=
  bus.emit(core::RunStarted{run.path().native(), run_title(setup), plan.rows(), session.step().scalar_names(), epochs,
                            epoch_steps, session.progress().step, last_step});
  for (const std::string& finding : setup.task->findings()) {
    bus.emit(core::Finding{finding});
  }
  if (!remark.empty()) {
    bus.emit(core::Finding{remark});
  }
}

// What the loop evaluates with; empty without a validation split.
std::function<std::vector<core::MetricValue>()> validation(const Setup& setup, Session& session, io::EventBus& bus,
                                                           const std::function<bool()>& give_up) {
  const std::int64_t size = setup.task->size(tasks::Split::kVal);
  if (size == 0) {
    return {};
  }
  const auto evaluation = std::make_shared<SplitEvaluation>(setup, session, tasks::Split::kVal);
  return [evaluation, &session, &bus, give_up, size] {
    return evaluation->run({bus, {session.progress().step, "val", 0, size}, give_up});
  };
}

}  // namespace

struct Job::State {
  Request request;
  Setup setup;
  std::optional<RunFolder> run;
  std::optional<io::Checkpoint> resumed;
  std::string remark;    // on how the run goes on; empty: nothing to say
  bool trained = false;  // train() has been called, and has a run folder

  void prepare(const Say& say);
  void resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say);
  Outcome train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop);
  void take_up();
};

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::prepare(Request request, const Say& say) {
  auto state = std::make_unique<State>();
  with_typed_errors([&] {
    state->request = with_whole_paths(std::move(request));
    state->prepare(say);
  });
  return Job(std::move(state));
}

Job Job::resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say) {
  auto state = std::make_unique<State>();
  with_typed_errors([&] { state->resume(path, changes, say); });
  return Job(std::move(state));
}

Outcome Job::train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop) {
  return typed([&] { return state_->train(std::move(sinks), stop); });
}

void Job::State::prepare(const Say& say) {
  if (request.plan_file.empty()) {
    setup = set_up(request, nullptr, say);
    return;
  }
  if (!request.options.all().empty()) {
    fail<ConfigError>(kWhere, "plan= repeats a plan as it is; leave out {}=", request.options.all().begin()->first);
  }
  const train::Plan plan = read_plan(request.plan_file);
  setup = set_up(request, &plan, say);
}

void Job::State::resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say) {
  run = RunFolder::open(path);
  try {
    request = make_request(run->config(), {});
  } catch (const ConfigError& error) {  // a task or a model that is not known here
    fail<ConfigError>(kWhere, "{}; where a program of its own made this run, that program resumes it", error.what());
  }
  train::Plan plan = read_plan(run->plan());
  const train::Plan before = plan;
  for (const std::string& change : changes) {
    change_plan(plan, change);
  }
  resumed = load_last(*run);
  const std::string weights = std::exchange(plan.weights, "");  // what became of them is in the checkpoint
  setup = set_up(request, &plan, say);
  setup.plan.weights = weights;
  const fs::path last = run->checkpoints() / "last";
  read_card(last, [&] { check_same_data(*resumed, last, *setup.task, path); });
  train::Progress progress;
  progress.load_state(resumed->state);
  const std::int64_t train_samples = setup.task->size(tasks::Split::kTrain);
  check_not_passed(progress, before, plan, train_samples);
  const std::string over = nothing_left(progress, plan, train_samples, path);
  if (!over.empty()) {
    say(over);
  } else {
    remark = describe_jump(before, plan, train_samples, progress.step);
  }
}

const train::Plan& Job::plan() const { return state_->setup.plan; }
fs::path Job::run_path() const { return state_->run ? state_->run->path() : fs::path(); }

std::vector<std::string> Job::facts() const { return describe_setup(state_->setup); }
const std::vector<std::string>& Job::findings() const { return state_->setup.task->findings(); }

// A second train() goes on as a resume would.
void Job::State::take_up() {
  if (std::exchange(trained, true)) {
    resumed = load_last(*run);
    remark.clear();
  }
}

Outcome Job::State::train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop) {
  const train::Plan& plan = setup.plan;
  const RunFolder& folder = open_run(run, request, plan, *setup.task);
  take_up();
  Session session(setup);
  go_on(session, resumed, folder);
  record_machine(folder.path(), setup.device, session.progress().step);
  const std::int64_t last_step = train::total_steps(plan, setup.task->size(tasks::Split::kTrain));
  const optim::ScheduleOptions schedule = schedule_of(plan, last_step);
  device::ScalarRing ring(setup.device, session.step().scalar_names().size());

  io::EventBus bus;
  add_sinks(bus, std::move(sinks), folder, plan);
  announce(bus, folder, setup, session, last_step, remark);
  RunCheckpoints checkpoints(folder, setup, session, bus);
  SourceListener listener(setup, folder, bus, session.progress().step);
  const auto source = setup.training_source(session.progress().position);
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
                                 listener.at_step(now);
                                 return optim::lr_at(schedule, now);
                               },
                               validation(setup, session, bus, give_up),
                               [&] { write_exhibits(session.samples(), folder.path(), session.progress().step, bus); },
                               [&](const char* kind) { checkpoints.save(kind); },
                               [&](std::int64_t index) { return setup.task->sample_name(index); },
                               device::throttled_memory(setup.device),
                               stop,
                               [&] { checkpoints.rescue(); }};
  return run_to_its_end(session.progress(), folder, bus,
                        [&] { return run_and_test(parts, setup, checkpoints, folder, bus, last_step, give_up); });
}

}  // namespace stoker::job
