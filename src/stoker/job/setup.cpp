// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/setup.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/device/prefetcher.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/smoke_check.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/epoch_trial.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/session.h"
#include "stoker/job/trials.h"
#include "stoker/job/wider_model.h"
#include "stoker/models/registry.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/resident/gatherer.h"
#include "stoker/resident/source.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/measure.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.setup";

// The kind that is asked for, or else the one that recognises the data.
const tasks::TaskKind& choose_kind(const Request& request, const train::Plan* saved, std::string& reason) {
  const auto* asked = request.options.find("task");
  if (saved != nullptr || asked != nullptr) {
    return tasks::task_kind(saved != nullptr ? saved->task : asked->value);
  }
  reason = "as the data looks";
  return tasks::recognise_task(request.data);
}

// What `stoker train` made lies beside data, and is soon given in its place.
void refuse_runs(const fs::path& data) {
  const std::string name = printable(data.native());
  if (RunFolder::is_run(data)) {
    fail<DataError>(kWhere,
                    "{}: is a run folder, no data; `stoker resume {}` goes on with it, `stoker eval {}` judges it",
                    name, name, name);
  }
  if (const auto runs = RunFolder::runs_in(data); !runs.empty()) {
    fail<DataError>(kWhere, "{}: is a folder of runs, no data; `stoker info {}` lists them", name, name);
  }
}

std::unique_ptr<tasks::Task> open_task(const tasks::TaskKind& kind, const Request& request, const train::Plan* saved,
                                       bool cuda, const Say& say) {
  // The split is cut before there is a plan: these two values are known without one.
  train::Plan cut;
  cut.val = train::kDefaultVal;
  cut.seed = train::kDefaultSeed;
  for (const char* key : {"val", "seed"}) {
    if (const auto* asked = request.options.find(key)) {
      train::setting(key).parse(cut, asked->value);
    }
  }
  const train::Plan& chosen = saved != nullptr ? *saved : cut;
  tasks::OpenOptions options;
  options.val = chosen.val;
  options.seed = static_cast<std::uint64_t>(chosen.seed);
  options.own = saved != nullptr ? saved->own : request.options.own_values();
  const auto* asked_model = request.options.find("model");
  options.model = saved != nullptr ? saved->model : asked_model != nullptr ? asked_model->value : "";
  options.cuda = cuda;
  options.named = saved != nullptr || request.options.find("task") != nullptr;
  tasks::check_own_values(kind, options.own);
  double next = now_s() + 1;  // a short look needs no words
  options.progress = [&](std::int64_t files) {
    if (const double now = now_s(); now >= next) {
      say(fmt::format("looking at {}: {} files so far", printable(request.data.native()), files));
      next = now + 1;
    }
  };
  return kind.open(request.data, options);
}

train::Facts gather_facts(const Request& request, const tasks::Task& task, const device::DeviceChoice& choice) {
  const auto asked = [&](const char* key) {
    const auto* found = request.options.find(key);
    return found == nullptr ? std::string() : found->value;
  };
  tasks::Asked question;
  question.model = asked("model");
  question.optimizer = asked("optimizer");
  question.own = request.options.own_values();
  question.batch = asked("batch").empty() ? 0 : std::stoll(asked("batch"));
  question.weights = !asked("weights").empty();
  question.cuda = choice.device.is_cuda();
  if (question.cuda && resident::find_gatherer(choice.device.type()) != nullptr) {
    question.device_memory = device::backend_for(choice.device).memory(choice.device).free;
  }
  question.memory = std::min(device::machine_facts().available_bytes, device::memory_limit_bytes());
  train::Facts facts;
  facts.train_samples = task.size(tasks::Split::kTrain);
  facts.val_samples = task.size(tasks::Split::kVal);
  facts.cores = device::cpu_quota().cores;
  facts.device = choice.device.is_cuda() ? choice.device.str() : "cpu";
  facts.device_reason = choice.reason;
  facts.recipe = task.recipe(question);
  const auto model = std::ranges::find(facts.recipe, "model", &core::PlanRow::key);
  facts.couples_samples = task.couples_samples(!question.model.empty()       ? question.model
                                               : model != facts.recipe.end() ? model->value
                                                                             : "");
  return facts;
}

std::map<std::string, at::Tensor> read_weights(const std::string& path) {
  if (fs::is_directory(path)) {
    return io::load_weights(find_checkpoint(path)).weights;
  }
  return io::read_safetensors(path).tensors;
}

// What became of the weights, in words.
std::string load_weights(models::Network& network, const std::string& path) {
  const auto weights = read_weights(path);  // its errors name the file
  try {
    return network.load(weights).text();
  } catch (const CheckpointError& error) {
    fail<CheckpointError>(kWhere, "weights={}: {}", printable(path), error.what());
  }
}

std::unique_ptr<tasks::NetworkTrainable> build_model(Setup& setup) {
  const train::Plan& plan = setup.plan;
  tasks::ModelRequest request;
  request.name = plan.model;
  request.seed = static_cast<std::uint64_t>(plan.seed);
  request.channels_last = plan.layout == "channels_last";
  auto model = setup.task->make_model(request);
  if (!plan.weights.empty()) {
    setup.notes.push_back(
        fmt::format("weights={}: {}", printable(plan.weights), load_weights(model->network(), plan.weights)));
  }
  model->network().set_frozen(static_cast<int>(plan.freeze));
  setup.sample_flops = setup.task->sample_flops(*model);  // here, not on a GPU, which would search for kernels first
  model->to(setup.device);
  return model;
}

void check_first_batch(const Setup& setup) {
  const auto source = setup.training_source({});
  const std::optional<core::Batch> batch = source->next();
  const tasks::BatchChecks checks = setup.task->checks();
  device::BatchFacts facts;
  facts.input = checks.input;
  facts.target = checks.target;
  facts.classes = checks.classes;
  facts.channels = checks.channels;
  device::check_batch(*setup.model, *batch, setup.device, facts);
}

struct Opened {
  Setup setup;
  train::Facts facts;
};

// Task and plan, as far as nothing has to be measured and no model is needed.
Opened open_setup(const Request& request, const train::Plan* saved, const Say& say) {
  if (request.data.empty()) {
    fail<ConfigError>(kWhere, "no data: give a folder, a table or a text, `stoker train DATA`");
  }
  refuse_runs(request.data);
  Setup setup;
  const auto* asked_device = request.options.find("device");
  const std::string wanted = saved != nullptr ? saved->device : asked_device != nullptr ? asked_device->value : "auto";
  const device::DeviceChoice choice = device::choose_device(wanted);
  setup.device = choice.device;
  std::string reason = "asked for";
  const tasks::TaskKind& kind = choose_kind(request, saved, reason);
  setup.task = open_task(kind, request, saved, setup.device.is_cuda(), say);
  train::Facts facts = gather_facts(request, *setup.task, choice);
  facts.task = kind.name;
  facts.task_reason = reason;
  if (saved != nullptr) {
    facts.couples_samples = setup.task->couples_samples(saved->model);
    train::check_repeatable(*saved, facts);
  }
  setup.plan = saved != nullptr ? *saved : train::resolve(request.options, facts);
  tasks::check_model_of(kind, setup.plan.model);
  setup.task->settle(setup.plan.model, setup.plan.own);
  return {std::move(setup), std::move(facts)};
}

// Precision, layout and threads as the plan has them: of a new run, where nobody asked, by timed trials.
void settle_speed(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                  const Say& say) {
  if (saved == nullptr) {
    StepTrials trials(setup, [&] { say("measuring which precision, layout and threads are fastest here ..."); });
    train::measure(setup.plan, request.options, facts, trials);
    setup.model->set_channels_last(setup.plan.layout == "channels_last");
  }
  if (setup.plan.half_weights) {
    precision::convert_to_half(setup.model->parameters(), setup.autocast_dtype());
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
}

// Takes a wider network where time= has epochs for it: FLOPs propose one, and its own steps decide. `unmeasured` is the
// plan before trials, from which another network starts; `time` that of the network that is there. Returns the time of
// the one that stays.
train::EpochTime take_wider(Setup& setup, const Request& request, const train::Facts& facts,
                            const train::Plan& unmeasured, const train::EpochTime& time, const Say& say) {
  const double epochs = train::epochs_in_time(setup.plan, facts.train_samples, time);
  const std::string wider = widest_that_fits(
      setup.plan.model, epochs, tasks::task_kind(setup.plan.task).models, [&](const std::string& model) {
        tasks::ModelRequest asked;
        asked.name = model;
        return static_cast<double>(setup.task->sample_flops(*setup.task->make_model(asked)));
      });
  if (wider.empty()) {
    return time;
  }
  train::Plan narrow_plan = std::exchange(setup.plan, unmeasured);
  auto narrow = std::move(setup.model);
  const std::int64_t narrow_flops = setup.sample_flops;
  at::set_num_threads(static_cast<int>(unmeasured.intra_op));
  setup.plan.model = wider;
  setup.model = build_model(setup);
  settle_speed(setup, request, facts, nullptr, say);
  train::EpochTime its_time = time_epoch(setup);
  // The first trial's images are decoded by now: what they took comes once in this run, too.
  its_time.first = std::max(its_time.first, its_time.later + time.first - time.later);
  const double fitting = train::epochs_in_time(setup.plan, facts.train_samples, its_time);
  if (fitting < kWidthPays) {
    setup.plan = std::move(narrow_plan);
    setup.model = std::move(narrow);
    setup.sample_flops = narrow_flops;
    at::set_num_threads(static_cast<int>(setup.plan.intra_op));
    return time;
  }
  train::decide(setup.plan, "model", wider, core::Origin::kMeasured,
                fmt::format("time={}s would do for {:.0f} epochs of {}, for {:.0f} of this wider one", setup.plan.time,
                            epochs, narrow_plan.model, fitting));
  return its_time;
}

// What a source needs of the plan.
tasks::BatchRequest batch_request(const Setup& setup) {
  tasks::BatchRequest request;
  request.seed = static_cast<std::uint64_t>(setup.plan.seed);
  request.threads = static_cast<int>(setup.plan.threads);
  if (request.threads == 0) {
    request.cores = static_cast<int>(setup.plan.intra_op);
  } else if (const auto note = setup.plan.notes.find("threads"); note != setup.plan.notes.end()) {
    const core::Origin origin = note->second.origin;
    const bool asked = origin == core::Origin::kConfig || origin == core::Origin::kCommandLine;
    const int left = device::cpu_quota().cores - static_cast<int>(setup.plan.intra_op);
    request.cores = asked ? 0 : std::max(request.threads, left);
  }
  request.pinned = setup.device.is_cuda();
  request.bad_samples = setup.bad_samples;
  return request;
}

}  // namespace

std::unique_ptr<core::BatchSource> Setup::training_source(core::Position start) const {
  tasks::BatchRequest request = batch_request(*this);
  request.batch = plan.batch;
  request.drop_tail = plan.tail == "drop";
  request.start = start;
  auto batches = device::prefetched(task->training_batches(request), device);
  auto images =
      device.is_cuda() && resident::find_gatherer(device.type()) != nullptr ? task->resident_images(request) : nullptr;
  if (!images) {
    return batches;
  }
  return std::make_unique<resident::ResidentSource>(std::move(batches), std::move(images), device, start, remarks);
}

std::unique_ptr<core::BatchSource> Setup::evaluation_source(tasks::Split split) const {
  tasks::BatchRequest request = batch_request(*this);
  request.batch = plan.microbatch;
  request.once = true;
  if (bad_samples) {
    request.bad_samples = [told = bad_samples, split](core::BadSample bad) {
      bad.reason += fmt::format(" ({} split)", tasks::split_name(split));
      told(bad);
    };
  }
  return device::prefetched(task->evaluation_batches(split, request), device, request.once);
}

at::ScalarType Setup::autocast_dtype() const { return precision::autocast_dtype(plan.precision); }

ModelCard Setup::card() const {
  ModelCard card;
  card.task = plan.task;
  card.model = plan.model;
  card.precision = plan.precision;
  card.layout = plan.layout;
  card.train_samples = task->size(tasks::Split::kTrain);
  return card;
}

Setup set_up(const Request& request, const train::Plan* saved, const Say& say) {
  auto [setup, facts] = open_setup(request, saved, say);
  say(describe_data(*setup.task));  // what follows may take seconds
  precision::apply({setup.plan.tf32, setup.plan.cudnn_benchmark, setup.plan.deterministic});
  setup.model = build_model(setup);
  for (const std::string& holder : device::backend_for(setup.device).busy_processes(setup.device)) {
    setup.notes.push_back(fmt::format("{} is shared: {}", setup.device.str(), holder));
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
  check_first_batch(setup);
  const train::Plan unmeasured = setup.plan;
  settle_speed(setup, request, facts, saved, say);
  if (saved != nullptr || !train::has_time_budget(setup.plan, request.options)) {
    return std::move(setup);
  }
  say("measuring how many epochs fit into time= ...");
  train::EpochTime time = time_epoch(setup);
  if (request.options.find("model") == nullptr && setup.plan.weights.empty()) {
    time = take_wider(setup, request, facts, unmeasured, time, say);
  }
  train::fit_time(setup.plan, facts.train_samples, time);
  return std::move(setup);
}

Setup open_data(const Request& request, const Say& say) { return open_setup(request, nullptr, say).setup; }

}  // namespace stoker::job
