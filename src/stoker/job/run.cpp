// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run.h"

#include <ATen/record_function.h>

#include <array>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/throttled_memory.h"
#include "stoker/io/loggers/cut_metrics.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/io/report/report.h"
#include "stoker/job/evaluate_best.h"
#include "stoker/job/log_sinks.h"
#include "stoker/job/machine_record.h"
#include "stoker/job/process.h"
#include "stoker/job/run_schedule.h"
#include "stoker/observe/feeding.h"
#include "stoker/observe/slow_steps.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/feed_watch.h"
#include "stoker/train/resolve.h"

namespace stoker::job {
namespace {

void add_sinks(io::EventBus& bus, std::vector<std::unique_ptr<core::EventSink>> sinks, const RunFolder& run,
               const Setup& setup) {
  const train::Plan& plan = setup.plan;
  const bool first = setup.ranks->rank() == 0;  // other programs get one record of a run
  if (first) {
    add_log_sinks(bus, run, plan);
  }
  bus.add(std::make_unique<io::MetricsCsv>(run.path()), /*awaited=*/true);
  bus.add(std::make_unique<io::MetricsJsonl>(run.path()), /*awaited=*/true);
  if (plan.tensorboard != "off" && first) {
    bus.add(std::make_unique<io::TensorBoardLog>(run.path()));
  }
  if (plan.device == "cpu") {
    bus.add(std::make_unique<observe::SlowSteps>(bus, plan.intra_op, device::involuntary_switches));
  }
  for (auto& sink : sinks) {
    bus.add(std::move(sink));
  }
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

// What the allocator of the run's device tells at any time.
std::vector<core::Figure> allocator_figures(c10::Device device) {
  const device::Backend& backend = device::backend_for(device);
  std::vector<core::Figure> figures;
  if (const std::int64_t bytes = backend.allocated(device); bytes >= 0) {
    figures.push_back({"device.allocated_bytes", static_cast<double>(bytes)});
  }
  if (const std::int64_t retries = backend.retries(device); retries >= 0) {
    figures.push_back({"device.allocation_retries", static_cast<double>(retries)});
  }
  return figures;
}

// For the report: how long the whole run waited for data.
void tell_if_starved(const core::Fed& fed, io::EventBus& bus) {
  const observe::Feeding feeding = observe::explain(fed);
  if (feeding.late && !feeding.stage.empty()) {
    bus.emit(core::Finding{feeding.words});
  }
}

}  // namespace

Run::Run(Setup& setup, const RunFolder& folder, std::optional<io::Checkpoint> resumed,
         std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop)
    : setup_(setup),
      folder_(folder),
      own_(folder.of_rank(setup.ranks->rank())),
      stop_(stop),
      session_(setup, &bus_),
      last_step_(begin(std::move(resumed))),
      schedule_(schedule_of(setup.plan, last_step_)),
      ring_(setup.device, session_.step().scalar_names().size()),
      memory_bytes_(device::throttled_memory(setup.device)),
      seconds_before_(session_.progress().seconds) {
  add_sinks(bus_, std::move(sinks), own_, setup);
  if (setup.task->size(tasks::Split::kVal) > 0) {
    validation_ = std::make_unique<SplitEvaluation>(setup, session_, tasks::Split::kVal);
  }
}

// The state of the checkpoint, if there is one, and the last step of the run.
std::int64_t Run::begin(std::optional<io::Checkpoint> resumed) {
  if (resumed) {
    session_.load(*resumed);
  }
  io::cut_metrics(own_.path(), session_.progress().step, session_.progress().evaluated_step);
  record_machine(own_.path(), setup_.device, session_.progress().step);
  return train::total_steps(setup_.plan, setup_.task->size(tasks::Split::kTrain));
}

Outcome Run::train(const std::string& remark) {
  announce(remark);
  checkpoints_.emplace(folder_, setup_, session_, bus_);
  listener_.emplace(setup_, own_, bus_, session_.progress().step);
  memory_.emplace(setup_, session_, own_.path(), bus_);
  watch_machine();
  profile_.emplace(setup_, own_.path() / "profile", bus_, orders_);
  if (first()) {
    socket_.emplace(folder_.path(), orders_);
  }
  Outcome outcome;
  try {
    outcome = typed([&] { return train_and_test(); });
  } catch (const std::exception& error) {
    end_watch();
    bus_.emit(core::RunFinished{session_.progress().step, "failed", error.what(), session_.progress().seconds});
    write_report();
    throw;
  }
  end_watch();
  const std::string text =
      outcome.undone.empty() ? "" : fmt::format("{} is not done; a resume starts with it", outcome.undone);
  bus_.emit(core::RunFinished{outcome.step, outcome_name(outcome.end), text, outcome.seconds});
  write_report();
  return outcome;
}

void Run::announce(const std::string& remark) {
  const train::Plan& plan = setup_.plan;
  const std::int64_t epoch_steps = train::steps_per_epoch(plan, setup_.task->size(tasks::Split::kTrain));
  const std::int64_t epochs = (last_step_ + epoch_steps - 1) / epoch_steps;  // steps= may override epochs=
  bus_.emit(core::RunStarted{.folder = folder_.path().native(),
                             .title = run_title(setup_),
                             .plan = plan.rows(),
                             .scalars = session_.step().scalar_names(),
                             .epochs = epochs,
                             .steps_per_epoch = epoch_steps,
                             .first_step = session_.progress().step,
                             .last_step = last_step_});
  for (const std::string& finding : setup_.task->findings()) {
    bus_.emit(core::Finding{finding});
  }
  if (!remark.empty()) {
    bus_.emit(core::Finding{remark});
  }
}

// A machine that starts no more threads does not end the run.
void Run::watch_machine() {
  if (!setup_.plan.monitor) {
    return;
  }
  const c10::Device device = setup_.device;
  const bool gpu = device.is_cuda();
  try {
    monitor_.emplace(bus_, observe::MonitorOptions{.nvml = gpu ? &device::machine_nvml() : nullptr,
                                                   .gpu_bus_id = device::backend_for(device).bus_id(device),
                                                   .more = [device] { return allocator_figures(device); }});
    monitor_->at_step(session_.progress().step);
  } catch (const ConfigError& error) {
    bus_.emit(core::Finding{fmt::format("the machine is not watched: {}", error.what())});
  }
}

void Run::end_watch() {
  if (monitor_) {
    monitor_->at_step(session_.progress().step);
    monitor_.reset();  // emits the record of the last window
  }
}

// The loop, and where its time went.
train::LoopEnd Run::train_steps() {
  const train::Progress& progress = session_.progress();
  const auto source = setup_.training_source(progress.position);  // after the sinks, which receive unreadable samples
  train::FeedWatch feed(*source, bus_);
  const train::LoopParts parts{.source = *source,
                               .step = session_.step(),
                               .progress = session_.progress(),
                               .recovery = session_.recovery(),
                               .scalars = ring_,
                               .events = bus_,
                               .feed = feed,
                               .ranks = *setup_.ranks,
                               .owner = *this};
  std::optional<device::PhaseEvents> on_device;
  if (!setup_.device.is_cpu()) {
    feed.book().listen(&on_device.emplace(setup_.device));
  }
  anatomy_.emplace(bus_, *source, on_device ? &*on_device : nullptr);
  if (setup_.ranks->size() > 1) {
    ranks_.emplace(*setup_.ranks, session_.step(), bus_);
  }
  const train::LoopEnd end = [&] {
    try {
      return train::run_loop(parts, setup_.plan, last_step_);
    } catch (...) {
      tell_until_error(feed.book());
      throw;
    }
  }();
  memory_->finish();
  profile_->finish();
  anatomy_->finish(feed.book(), progress.step);
  anatomy_.reset();
  if (ranks_) {
    ranks_->finish(progress.step);
  }
  socket_.reset();
  tell_if_starved(feed.total(progress.step), bus_);
  return end;
}

// What was seen of the steps before the loop failed. Another error here is not told: it may be due to the first one.
void Run::tell_until_error(const core::PhaseBook& book) {
  const auto try_to = [](const auto& work) {
    try {
      work();
    } catch (const std::exception&) {
    }
  };
  try_to([&] { memory_->finish(); });
  try_to([&] { anatomy_->finish(book, session_.progress().step); });
  anatomy_.reset();
  try_to([&] {
    if (ranks_) {
      ranks_->finish(session_.progress().step);
    }
  });
}

// The steps, then the test split with the best weights, unless it was stopped.
Outcome Run::train_and_test() {
  const train::Progress& progress = session_.progress();
  Outcome outcome;
  outcome.end = train_steps();
  outcome.best = checkpoints_->best();
  if (outcome.end != train::LoopEnd::kStopped) {
    test_best(outcome);
  } else if (validates() && train::owes_evaluation(progress, setup_.plan, last_step_)) {
    outcome.undone = fmt::format("the validation after step {}", progress.step);
  }
  if (outcome.end == train::LoopEnd::kStopped) {
    std::array trouble{ranks_in_trouble_};  // another rank may have seen it first
    core::any_rank(*setup_.ranks, trouble);
    outcome.ranks_in_trouble = trouble[0];
  }
  outcome.step = progress.step;
  outcome.seconds = progress.seconds;
  return outcome;
}

// An interruption leaves the run where it can be resumed.
void Run::test_best(Outcome& outcome) {
  setup_.ranks->barrier();  // rank 0 has written the checkpoint
  auto metrics = evaluate_best(folder_.path(), setup_, session_.progress(), bus_, [this] { return gives_up(); });
  if (metrics) {
    outcome.test = std::move(*metrics);
    return;
  }
  std::array stopped{stop_.load()};  // on another rank, too
  core::any_rank(*setup_.ranks, stopped);
  if (stopped[0]) {
    outcome.end = train::LoopEnd::kStopped;
    outcome.undone = "the evaluation of the best checkpoint";
  } else {
    bus_.emit(core::Finding{
        fmt::format("time= ran out before the best checkpoint was evaluated; `stoker eval {}` evaluates it",
                    printable(folder_.path().native()))});
  }
}

// Writes the run's page from the logs so far. A failure here does not end the run.
void Run::write_report() {
  try {
    bus_.flush();
    if (!first()) {
      return;
    }
    io::write_report(folder_.path());
  } catch (const Error& error) {
    bus_.emit(core::Finding{fmt::format("report.html could not be written: {}", error.what())});
  }
}

// A rank that fails later could not tell the others: better to end in order now.
void Run::watch_ranks() {
  if (std::string trouble = setup_.ranks->trouble(); !trouble.empty() && !std::exchange(ranks_in_trouble_, true)) {
    bus_.emit(core::Finding{fmt::format("{}; all ranks save and stop after this step", trouble)});
  }
}

double Run::begin_step(std::int64_t step) {
  watch_ranks();
  listener_->at_step(step);
  if (monitor_) {
    monitor_->at_step(step - 1);
  }
  memory_->begin_step(step);
  return optim::lr_at(schedule_, step);
}

void Run::computed(const core::Batch& batch) {
  samples_ = batch.global_size();
  memory_->computed(batch);
}

double Run::step_done() {
  memory_->step_done();
  const bool recorded = profile_->active();
  const double seconds = profile_->step_done(session_.progress().step + 1, samples_);
  if (recorded || profile_->active()) {
    memory_->disturbed();  // the records of a profile grow from step to step
  }
  return apart_ = seconds;
}

std::vector<core::MetricValue> Run::evaluate() {
  RECORD_USER_SCOPE("evaluation");
  const std::int64_t size = setup_.task->size(tasks::Split::kVal);
  memory_->disturbed();
  return validation_->run({bus_, {session_.progress().step, "val", 0, size}, [this] { return gives_up(); }});
}

void Run::show() {
  if (!first()) {
    return;
  }
  session_.recovery().between_steps("the making of samples to show", [this] {
    write_exhibits(session_.samples(), folder_.path(), session_.progress().step, bus_);
  });
}

void Run::save(const char* kind) {
  const bool best = kind == std::string_view("best");
  setup_.ranks->settle();
  if (!best) {
    session_.collect();
  }
  if (!first()) {
    if (best) {
      session_.mark_best();
    }
    return;
  }
  RECORD_USER_SCOPE("checkpoint");
  memory_->disturbed();
  session_.recovery().between_steps(fmt::format("the save of checkpoint \"{}\"", kind),
                                    [&] { checkpoints_->save(kind); });
  session_.drop_collected();
}

void Run::rescue() {
  setup_.ranks->settle();
  if (first() && session_.scattered()) {
    bus_.emit(core::Finding{fmt::format("step {} is not saved: other ranks hold parts of what a checkpoint needs",
                                        session_.progress().step)});
  } else if (first()) {
    checkpoints_->rescue();
  }
}

bool Run::gives_up() const {
  return stop_ || train::too_late_to_evaluate(setup_.plan, seconds_before_ + watch_.seconds());
}

}  // namespace stoker::job
