// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/setup.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/version.h"
#include "stoker/device/backend.h"
#include "stoker/device/gpu_holders.h"
#include "stoker/device/placement.h"
#include "stoker/device/prefetcher.h"
#include "stoker/device/process_facts.h"
#include "stoker/job/build_model.h"
#include "stoker/job/measured_choices.h"
#include "stoker/job/opened_data.h"
#include "stoker/job/pipeline_cut.h"
#include "stoker/job/rank_devices.h"
#include "stoker/job/session.h"
#include "stoker/memory/recompute.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/resident/gatherer.h"
#include "stoker/resident/source.h"
#include "stoker/train/pipeline_plan.h"
#include "stoker/train/profile_steps.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job.setup";

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
    const int left = own_cores(setup.ranks->size_here()) - static_cast<int>(setup.plan.intra_op);
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
  if (in_stages()) {  // the stages of a pipeline get the same samples
    request.rank /= static_cast<int>(plan.pipeline);
    request.ranks /= static_cast<int>(plan.pipeline);
  }
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
                        .smallest = plan.optimizer_in_backward ? plan.batch
                                    : couples_samples          ? 2
                                                               : 1,
                        .repeat = memory::parse_schedule(plan.microbatch_schedule)};
  if (couples_samples) {
    options.coupled = fmt::format(
        "in measurements passes of fewer than 8 samples cost accuracy; larger passes help, and so {} "
        "(docs/memory.md)",
        !plan.own.contains("norm") ? "do norms that see one sample, such as group norm"  // a program's own task
        : plan.weights.empty()     ? "does norm=group"
                                   : "does freeze_norm=on");
  }
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

// The names of recompute= fit the model; a note if it can save nothing.
void check_recompute(Setup& setup) {
  const memory::RecomputePlan recomputed(*setup.model, memory::parse_recompute(setup.plan.recompute));
  if (setup.model->segments() == 1 && recomputed.names() == std::vector<std::string>{setup.model->segment_name(0)}) {
    setup.notes.push_back(
        fmt::format("recompute={}: the model is one segment, so backward needs all of it at once and recomputing it "
                    "saves no memory at the peak; name parts of it instead, or set recompute=none",
                    printable(setup.plan.recompute)));
  }
}

// So that a profile that no step can begin is refused before the training.
void check_profile(const Setup& setup) {
  const std::int64_t first = train::parse_profile(setup.plan.profile).first;
  const std::int64_t last = train::total_steps(setup.plan, setup.task->size(tasks::Split::kTrain));
  if (first > last) {
    fail<ConfigError>(kWhere, "profile={} begins at step {}, but the run has {} steps; set profile={} or less",
                      setup.plan.profile, first, last, std::max<std::int64_t>(1, last - train::kProfileSteps));
  }
}

// A repeated plan may be of other ranks, and is of rank 0's device.
void put_own_ranks(Setup& setup, const Request& request) {
  const int ranks = request.ranks ? request.ranks->size() : 1;
  if (setup.plan.ranks != ranks) {
    train::decide(setup.plan, "ranks", std::to_string(ranks), core::Origin::kDefault,
                  ranks == 1                     ? "one process"
                  : request.ranks_reason.empty() ? "as many as continue the run"
                                                 : request.ranks_reason);
  }
  if (setup.plan.pipeline == 1) {
    setup.plan.pipeline_cut.clear();  // of stages that there were before
  }
  train::check_pipeline(setup.plan, {});
  if (ranks > 1) {
    setup.plan.device = setup.device.str();
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
  if (saved != nullptr) {
    put_own_ranks(setup, request);
  }
  setup.couples_samples = train::couples_samples(setup.plan, facts);
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
  check_recompute(setup);
  for (const std::string& holder : device::busy_processes(setup.device, /*we_hold=*/true)) {
    setup.notes.push_back(fmt::format("{} is shared: {}", setup.device.str(), holder));
  }
  check_first_batch(setup);
  make_choices(setup, request, facts, saved, say);
  if (saved == nullptr) {
    check_profile(setup);
  }
  return setup;
}

// Rank 0 measures it for all.
void put_pipeline_cut(Setup& setup, const Say& say) {
  core::Communicator& ranks = *setup.ranks;
  if (setup.plan.pipeline == 1) {
    return;
  }
  PipelineCut cut;
  core::together(ranks, [&] {
    if (ranks.rank() == 0) {
      cut = choose_pipeline_cut(setup, say);
    }
  });
  cut.segments = core::text_of_first_rank(ranks, std::move(cut.segments));
  cut.reason = core::text_of_first_rank(ranks, std::move(cut.reason));
  if (!cut.reason.empty()) {
    train::decide(setup.plan, "pipeline_cut", cut.segments, core::Origin::kMeasured, cut.reason);
  }
}

// Rank 0's plan on this rank's device.
train::Plan on_own_device(train::Plan plan, const Request& request) {
  const device::DeviceChoice own = choose_own_device(request, nullptr);
  const c10::Device first(plan.device);
  if (own.device.type() != first.type()) {
    fail<ConfigError>(kWhere, "rank 0 trains on {}, but this rank on {}; set device= to the same kind for all ranks",
                      plan.device, own.device.str());
  }
  train::decide(plan, "device", own.device.str(), plan.notes.at("device").origin, plan.notes.at("device").reason);
  return plan;
}

// All ranks throw if one of them differs from rank 0. what: a sentence about `mine`.
void check_same(core::Communicator& ranks, const std::string& what, const std::string& mine) {
  const std::string first = core::text_of_first_rank(ranks, mine);
  core::together(ranks, [&] {
    if (mine != first) {
      fail<ConfigError>(kWhere, "{} {} here, but {} on rank 0; give all ranks the same program, command and data", what,
                        mine.empty() ? "none" : printable(mine), first.empty() ? "none" : printable(first));
    }
  });
}

// What a rank was asked for, but for its device: rank 0's plan runs on all of them, so it would be ignored.
std::string options_text(const train::Options& options) {
  std::string text;
  for (const auto& [key, given] : options.all()) {
    text += key == "device" ? "" : fmt::format("{}={} ", key, given.value);
  }
  for (const std::string& key : options.autos()) {
    text += key + "=auto ";
  }
  return text;
}

}  // namespace

Setup set_up(const Request& request, const train::Plan* saved, const Say& say) {
  if (!request.ranks || request.ranks->size() == 1) {
    Setup setup = set_up_alone(request, saved, say);
    put_pipeline_cut(setup, say);
    return setup;
  }
  core::Communicator& ranks = *request.ranks;
  check_same(ranks, "the program is", fmt::format("Stoker {} with torch {}", kVersion, device::versions().torch));
  check_same(ranks, "the options are", options_text(request.options));
  std::optional<device::DeviceChoice> own;
  core::together(ranks, [&] { own = choose_own_device(request, saved); });
  check_devices_of_ranks(ranks, own->device);
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
  check_same(ranks, "the data is", describe_data(*setup->task));
  put_pipeline_cut(*setup, say);
  return *std::move(setup);
}

}  // namespace stoker::job
