// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/setup.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "stoker/base/bytes_text.h"
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
#include "stoker/job/memory_advice.h"
#include "stoker/job/opened_data.h"
#include "stoker/job/session.h"
#include "stoker/job/trials.h"
#include "stoker/job/wider_model.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/memory/recompute.h"
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

std::map<std::string, at::Tensor> read_weights(const std::string& path) {
  if (fs::is_directory(path)) {
    return io::load_weights(find_checkpoint(path)).weights;
  }
  return io::read_safetensors(path).tensors;
}

// The result of loading the weights, as text.
std::string load_weights(tasks::Model& model, const std::string& path) {
  const auto weights = read_weights(path);  // errors name the file
  try {
    return model.load(weights).text();
  } catch (const CheckpointError& error) {
    fail<CheckpointError>(kWhere, "weights={}: {}", printable(path), error.what());
  }
}

std::unique_ptr<tasks::Model> build_model(Setup& setup) {
  const train::Plan& plan = setup.plan;
  tasks::ModelRequest request;
  request.name = plan.model;
  request.seed = static_cast<std::uint64_t>(plan.seed);
  request.channels_last = plan.layout == "channels_last";
  auto model = setup.task->make_model(request);
  if (!plan.weights.empty()) {
    setup.notes.push_back(fmt::format("weights={}: {}", printable(plan.weights), load_weights(*model, plan.weights)));
  }
  model->set_frozen(static_cast<int>(plan.freeze));
  setup.sample_flops = setup.task->sample_flops(*model);  // on the CPU, since a GPU would search for kernels first
  model->to(setup.device);
  return model;
}

// The weights are there already: what a step holds besides activations must fit, too.
void require_room(const Setup& setup) {
  const std::int64_t limit = setup.plan.memory_limit;
  if (limit == 0) {
    return;
  }
  const HeldBytes held = held_by_run(setup);
  const std::int64_t need = held.weights + held.gradients + held.optimizer + held.averages;
  if (need > limit) {
    fail<ConfigError>(kWhere,
                      "memory_limit={} is too small: the weights of {} take {}, and with gradients, {} and averages it "
                      "is {} before the first activation; raise it, or set a smaller model=",
                      bytes_text(limit), setup.plan.model, bytes_text(held.weights), setup.plan.optimizer,
                      bytes_text(need));
  }
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

// Precision, layout and threads of the plan: of a new run by timed trials, unless they are set.
void choose_speed(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                  const Say& say) {
  if (saved == nullptr) {
    StepTrials trials(setup, [&] { say("measuring the fastest precision, layout and threads ..."); });
    train::measure(setup.plan, request.options, facts, trials);
    setup.model->set_channels_last(setup.plan.layout == "channels_last");
  }
  if (setup.plan.half_weights) {
    precision::convert_to_half(setup.model->parameters(), setup.autocast_dtype());
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
}

// Takes a wider network if time= allows enough epochs of it: FLOPs propose one, and its own measured steps decide.
// `unmeasured` is the plan before trials, from which another network starts; `time` belongs to the current network.
// Returns the time of the network that is kept.
train::EpochTime take_wider(Setup& setup, const Request& request, const train::Facts& facts,
                            const train::Plan& unmeasured, const train::EpochTime& time, const Say& say) {
  const double epochs = train::epochs_in_time(setup.plan, facts.train_samples, time);
  const std::string wider = widest_that_fits(
      setup.plan.model, epochs, tasks::task_kind(setup.plan.task).info().models, [&](const std::string& model) {
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
  choose_speed(setup, request, facts, nullptr, say);
  train::EpochTime its_time = time_epoch(setup);
  // The images of the first trial are already decoded: their decoding time occurs once in this run too.
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
                fmt::format("time={}s allows {:.0f} epochs of {}, or {:.0f} of this wider model", setup.plan.time,
                            epochs, narrow_plan.model, fitting));
  return its_time;
}

// The values of the plan that a source needs.
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
  request.rank = setup.ranks->rank();
  request.ranks = setup.ranks->size();
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

train::Recovery Setup::training_recovery(core::EventEmitter* events) const {
  train::RecoveryOptions options{.device = device, .work = "the step", .events = events};
  options.microbatch = {.asked = plan.microbatch,
                        .smallest = couples_samples ? 2 : 1,
                        .repeat = memory::parse_schedule(plan.microbatch_schedule)};
  return train::Recovery(std::move(options));
}

train::Recovery Setup::evaluation_recovery(core::EventEmitter* events) const {
  return train::Recovery({.device = device, .work = "the evaluation", .events = events});
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

void Setup::set_switches() const {
  device::backend_for(device).limit_memory(device, plan.memory_limit);
  precision::apply({.tf32 = plan.tf32, .cudnn_benchmark = plan.cudnn_benchmark, .deterministic = plan.deterministic});
  torch::autograd::AnomalyMode::set_enabled(plan.anomaly);
  at::set_num_threads(static_cast<int>(plan.intra_op));
}

namespace {

// Runs work, with smaller microbatches in the plan each time that memory runs out.
template <typename Work>
void in_microbatches_that_fit(Setup& setup, const Work& work) {
  memory::Microbatch policy({.asked = setup.plan.microbatch, .smallest = setup.couples_samples ? 2 : 1});
  while (true) {
    try {
      work();
      return;
    } catch (const std::exception& error) {
      if (!memory::is_out_of_memory(error)) {
        throw;
      }
      device::backend_for(setup.device).release_cache(setup.device);
      const std::int64_t before = setup.plan.microbatch;
      if (!policy.shrink(setup.plan.batch)) {
        throw;
      }
      train::decide(setup.plan, "microbatch", std::to_string(policy.largest_pass(setup.plan.batch)),
                    core::Origin::kMeasured, fmt::format("{} samples per forward pass do not fit into memory", before));
    }
  }
}

Setup set_up_alone(const Request& request, const train::Plan* saved, const Say& say) {
  if (saved == nullptr) {
    check_search(request.options);
  }
  OpenedData opened = open_data(request, saved, say);
  const train::Facts facts = std::move(opened.facts);
  Setup setup;
  setup.device = opened.device;
  setup.task = settle(opened);
  setup.plan = std::move(opened.plan);
  setup.couples_samples = facts.couples_samples;
  if (request.ranks) {
    setup.ranks = request.ranks;
  }
  say(describe_data(*setup.task));  // the next part may take seconds
  setup.set_switches();
  const device::Backend& backend = device::backend_for(setup.device);
  backend.limit_memory(setup.device, 0);  // so that a model that cannot fit is named, not its first tensor
  setup.model = build_model(setup);
  require_room(setup);
  backend.limit_memory(setup.device, setup.plan.memory_limit);
  (void)memory::RecomputePlan(*setup.model, memory::parse_recompute(setup.plan.recompute));  // its names fit the model
  for (const std::string& holder : device::backend_for(setup.device).busy_processes(setup.device)) {
    setup.notes.push_back(fmt::format("{} is shared: {}", setup.device.str(), holder));
  }
  check_first_batch(setup);
  const train::Plan unmeasured = setup.plan;
  in_microbatches_that_fit(setup, [&] {
    const std::int64_t microbatch = setup.plan.microbatch;
    const train::Plan::Note why = setup.plan.notes.at("microbatch");
    setup.plan = unmeasured;
    train::decide(setup.plan, "microbatch", std::to_string(microbatch), why.origin, why.reason);
    choose_speed(setup, request, facts, saved, say);
  });
  const bool searches = saved == nullptr && searches_passes(request.options);
  if (searches) {
    say("searching the samples per forward pass ...");
    setup.passes = choose_passes(setup, request, facts);
  }
  if (saved != nullptr || !train::has_time_budget(setup.plan, request.options)) {
    return setup;
  }
  say("measuring how many epochs fit into time= ...");
  train::EpochTime time = time_epoch(setup);
  if (request.options.find("model") == nullptr && setup.plan.weights.empty()) {
    const std::string narrow = setup.plan.model;
    time = take_wider(setup, request, facts, unmeasured, time, say);
    if (searches && setup.plan.model != narrow) {  // another network needs another memory
      setup.passes = choose_passes(setup, request, facts);
    }
  }
  train::fit_time(setup.plan, facts.train_samples, time);
  return setup;
}

// Rank 0's plan on this rank's device.
train::Plan on_own_device(train::Plan plan, const Request& request) {
  const train::Options::Given* asked = request.options.find("device");
  const device::DeviceChoice own = device::choose_device(asked != nullptr ? asked->value : "auto");
  const c10::Device first(plan.device);
  if (own.device.type() != first.type()) {
    fail<ConfigError>(kWhere, "rank 0 trains on {}, but this rank on {}; set device= to the same kind for all ranks",
                      plan.device, own.device.str());
  }
  train::decide(plan, "device", own.device.str(), plan.notes.at("device").origin, plan.notes.at("device").reason);
  return plan;
}

}  // namespace

Setup set_up(const Request& request, const train::Plan* saved, const Say& say) {
  if (!request.ranks || request.ranks->size() == 1) {
    return set_up_alone(request, saved, say);
  }
  core::Communicator& ranks = *request.ranks;
  std::optional<Setup> setup;
  std::string text;
  if (saved == nullptr) {  // rank 0 measures while the others wait
    core::together(ranks, [&] {
      if (ranks.rank() == 0) {
        setup = set_up_alone(request, nullptr, say);
        text = train::plan_to_json(setup->plan);
      }
    });
    text = core::text_of_first_rank(ranks, std::move(text));
  }
  core::together(ranks, [&] {
    if (setup) {
      return;
    }
    const train::Plan plan = saved != nullptr ? *saved : on_own_device(train::plan_from_json(text), request);
    setup = set_up_alone(request, &plan, say);
  });
  return *std::move(setup);
}

}  // namespace stoker::job
