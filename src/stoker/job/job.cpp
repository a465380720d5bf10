// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/job.h"

#include <atomic>
#include <optional>
#include <sstream>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/host_allocator.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/job/continued_run.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/log_sinks.h"
#include "stoker/job/process.h"
#include "stoker/job/rank_places.h"
#include "stoker/job/resumption.h"
#include "stoker/job/run.h"
#include "stoker/job/run_schedule.h"
#include "stoker/job/saved_plan.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/job/untracked_steps.h"
#include "stoker/precision/process_switches.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job";

// Creates the folder of a new run. The plan is written each time, since a resume may change it.
void write_run(std::optional<RunFolder>& run, const Request& request, const train::Plan& plan,
               const tasks::ReadyTask& task) {
  if (!run) {
    run = RunFolder::create(request.run.empty() ? default_run_name(request.data, plan.model) : request.run, "runs",
                            request.start.repeats);
    record_start(*run, request);
    write_file_atomically(run->config(), request_to_toml(request));
    for (const auto& [name, text] : task.records()) {
      std::error_code ignored;  // the write reports errors
      fs::create_directories(run->path() / "artifacts", ignored);
      write_file_atomically(run->path() / "artifacts" / name, text);
    }
  }
  write_file_atomically(run->plan(), train::plan_to_json(plan));
}

// Rank 0 writes the run; the others see the same folder.
const RunFolder& open_run(std::optional<RunFolder>& run, const Request& request, const Setup& setup) {
  core::Communicator& ranks = *setup.ranks;
  core::together(ranks, [&] {
    if (ranks.rank() == 0) {
      write_run(run, request, setup.plan, *setup.task);
    }
  });
  const std::string path = core::text_of_first_rank(ranks, ranks.rank() == 0 ? fs::absolute(run->path()).native() : "");
  core::together(ranks, [&] {
    if (ranks.rank() > 0) {
      if (!RunFolder::is_run(path)) {
        fail<ConfigError>(
            kWhere,
            "{}: rank {} does not see the run folder that rank 0 made; set run=PATH to a folder of a file "
            "system that all nodes share",
            printable(path), ranks.rank());
      }
      run = RunFolder::open(path);
    }
  });
  return *run;
}

}  // namespace

struct Job::State {
  precision::ProcessSwitches switches;  // restored when the job ends
  Request request;
  Setup setup;
  std::optional<RunFolder> run;
  std::optional<io::Checkpoint> resumed;
  std::string remark;    // on how the run continues; empty: none
  bool trained = false;  // train() has been called, and has a run folder

  State() = default;
  ~State() {
    if (setup.plan.memory_limit > 0) {
      device::backend_for(setup.device).limit_memory(setup.device, 0);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  void prepare(const Say& say);
  // request: of its ranks. may_begin: a run without a checkpoint is no error.
  void resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say, bool may_begin);
  train::Plan read_run(const fs::path& path, const std::vector<std::string>& changes, train::Plan& before,
                       bool may_begin);
  void check_resumed(const fs::path& path, const train::Plan& before, const Say& say);
  Outcome train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop);
  void take_up();
};

namespace {

// A rank that cannot read its files must not leave the others waiting.
void together(const Request& request, const std::function<void()>& work) {
  core::SingleRank alone;
  core::together(request.ranks ? *request.ranks : alone, work);
}

// An error that ends this rank reaches the others.
void with_all_ranks(std::shared_ptr<core::Communicator> ranks, const std::function<void()>& work) {
  try {
    with_typed_errors(work);
  } catch (const std::exception& error) {
    if (ranks) {
      ranks->leave(error);
    }
    throw;
  }
}

// Rank 0 looks for it.
std::optional<ContinuedRun> agreed_run(const Request& request) {
  std::optional<ContinuedRun> found;
  if (!request.ranks) {
    return run_to_continue(request);
  }
  core::Communicator& ranks = *request.ranks;
  std::string text;
  core::together(ranks, [&] {
    if (found = ranks.rank() == 0 ? run_to_continue(request) : std::nullopt; found) {
      text = fs::absolute(found->run).native();
      for (const std::string& change : found->changes) {
        text += '\0' + change;
      }
    }
  });
  text = core::text_of_first_rank(ranks, std::move(text));
  if (ranks.rank() > 0 && !text.empty()) {
    std::istringstream words(text);
    std::string word;
    std::getline(words, word, '\0');
    found.emplace().run = word;
    while (std::getline(words, word, '\0')) {
      found->changes.push_back(word);
    }
  }
  return found;
}

}  // namespace

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::prepare(Request request, const Say& say) {
  device::install_host_allocator();
  std::unique_ptr<State> state;
  with_all_ranks(request.ranks, [&] {
    state = std::make_unique<State>();
    state->request = with_whole_paths(std::move(request));
    state->prepare(say);
  });
  return Job(std::move(state));
}

Job Job::resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say,
                std::shared_ptr<core::Communicator> ranks) {
  device::install_host_allocator();
  std::unique_ptr<State> state;
  with_all_ranks(ranks, [&] {
    state = std::make_unique<State>();
    state->request.ranks = ranks;
    state->resume(path, changes, say, /*may_begin=*/false);
  });
  return Job(std::move(state));
}

Job Job::prepare_or_resume(Request request, const Say& say) {
  std::optional<ContinuedRun> found;
  const std::shared_ptr<core::Communicator> ranks = request.ranks;
  with_all_ranks(ranks, [&] { found = agreed_run(request); });
  if (!found) {
    return prepare(std::move(request), say);
  }
  device::install_host_allocator();
  say(fmt::format("the run {} goes on", printable(found->run.native())));
  std::unique_ptr<State> state;
  with_all_ranks(ranks, [&] {
    state = std::make_unique<State>();
    state->request = std::move(request);
    state->resume(found->run, found->changes, say, /*may_begin=*/true);
  });
  return Job(std::move(state));
}

Outcome Job::train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop) {
  std::optional<Outcome> outcome;
  with_all_ranks(state_->setup.ranks, [&] { outcome = state_->train(std::move(sinks), stop); });
  return *std::move(outcome);
}

void Job::State::prepare(const Say& say) {
  std::optional<train::Plan> plan;
  together(request, [&] {
    if (const auto* const log = request.options.find("log")) {
      check_log_targets(log->value);
    }
    if (request.plan_file.empty()) {
      return;
    }
    if (!request.options.all().empty()) {
      fail<ConfigError>(kWhere, "plan= repeats a plan unchanged; remove {}=", request.options.all().begin()->first);
    }
    if (searches_passes(request.options)) {
      fail<ConfigError>(kWhere, "plan= repeats a plan unchanged; remove {}=auto", *request.options.autos().begin());
    }
    plan = read_plan(request.plan_file);
    check_log_targets(plan->log);
  });
  setup = set_up(request, plan ? &*plan : nullptr, say);
}

void Job::State::resume(const fs::path& path, const std::vector<std::string>& changes, const Say& say, bool may_begin) {
  train::Plan before, plan;
  together(request, [&] { plan = read_run(path, changes, before, may_begin); });
  if (!resumed) {
    setup = set_up(request, &plan, say);
    return;
  }
  const std::string weights = std::exchange(plan.weights, "");  // the checkpoint has the result
  setup = set_up(request, &plan, say);
  setup.plan.weights = weights;
  together(request, [&] { check_resumed(path, before, say); });
}

// The plan of the run as it was, and with changes.
train::Plan Job::State::read_run(const fs::path& path, const std::vector<std::string>& changes, train::Plan& before,
                                 bool may_begin) {
  run = RunFolder::open(path);
  const Request started = request;
  try {
    request = make_request(run->config(), {});
  } catch (const ConfigError& error) {  // a task or a model that is unknown here
    fail<ConfigError>(kWhere, "{}; if another program made this run, resume it with that program", error.what());
  }
  request.ranks = started.ranks;
  request.ranks_reason = started.ranks_reason;
  request.start = started.start;
  before = read_plan(run->plan());
  check_log_targets(before.log);
  train::Plan plan = before;
  for (const std::string& change : changes) {
    change_plan(plan, change);
  }
  if (!may_begin || io::CheckpointStore(run->checkpoints()).has("last")) {
    resumed = load_last(*run);
  }
  return plan;
}

void Job::State::check_resumed(const fs::path& path, const train::Plan& before, const Say& say) {
  const train::Plan& plan = setup.plan;
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

std::string Job::profile(std::int64_t steps, const fs::path& trace, const Say& say) {
  return typed([&] {
    state_->setup.set_switches();
    return profile_untracked(state_->setup, state_->resumed, steps, trace, say);
  });
}

const train::Plan& Job::plan() const { return state_->setup.plan; }
fs::path Job::run_path() const { return state_->run ? state_->run->path() : fs::path(); }

std::string Job::title() const { return run_title(state_->setup); }
std::vector<std::string> Job::facts() const { return describe_setup(state_->setup); }
std::string Job::places() const { return rank_places(state_->setup); }
const std::optional<PassChoice>& Job::passes() const { return state_->setup.passes; }
const std::vector<std::string>& Job::findings() const { return state_->setup.task->findings(); }

// A second train() continues as a resume does.
void Job::State::take_up() {
  if (std::exchange(trained, true)) {
    resumed = load_last(*run);
    remark.clear();
  }
}

Outcome Job::State::train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop) {
  setup.set_switches();  // another job may have changed them
  const RunFolder& folder = open_run(run, request, setup);
  setup.ranks->keep_record_in(folder.path() / "flight");
  take_up();
  return Run(setup, folder, std::exchange(resumed, std::nullopt), std::move(sinks), stop).train(remark);
}

}  // namespace stoker::job
