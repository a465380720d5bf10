// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/opened_data.h"

#include <algorithm>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/host_memory.h"
#include "stoker/device/placement.h"
#include "stoker/job/run_folder.h"
#include "stoker/parallel/device_group.h"
#include "stoker/resident/gatherer.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/plan_options.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.setup";

// The kind that is set, or else the one that recognises the data.
const tasks::TaskKind& choose_kind(const Request& request, const train::Plan* saved, std::string& reason) {
  const auto* asked = request.options.find("task");
  if (saved != nullptr || asked != nullptr) {
    return tasks::task_kind(saved != nullptr ? saved->task : asked->value);
  }
  reason = "inferred from the data";
  return tasks::recognise_task(request.data);
}

// Run folders are often beside data, and are easily given by mistake.
void refuse_runs(const fs::path& data) {
  const std::string name = printable(data.native());
  if (RunFolder::is_run(data)) {
    fail<DataError>(kWhere,
                    "{}: is a run folder, not data; `stoker resume {}` continues it, `stoker eval {}` evaluates it",
                    name, name, name);
  }
  if (const auto runs = RunFolder::runs_in(data); !runs.empty()) {
    fail<DataError>(kWhere, "{}: is a folder of runs, not data; `stoker info {}` lists them", name, name);
  }
}

std::unique_ptr<tasks::OpenData> open_kind(const tasks::TaskKind& kind, const Request& request,
                                           const train::Plan* saved, bool cuda, const Say& say) {
  // The split is made before there is a plan: these two values are known without one.
  train::Plan chosen = saved != nullptr ? *saved : train::default_plan();
  for (const char* key : {"val", "seed"}) {
    if (const auto* given = request.options.find(key); given != nullptr && saved == nullptr) {
      train::set_value(chosen, key, given->value);
    }
  }
  tasks::OpenOptions options;
  options.val = chosen.val;
  options.seed = static_cast<std::uint64_t>(chosen.seed);
  options.own = saved != nullptr ? saved->own : request.options.own_values();
  options.model = saved != nullptr ? saved->model : request.options.text_or("model", "");
  options.cuda = cuda;
  options.named = saved != nullptr || request.options.find("task") != nullptr;
  tasks::check_own_values(kind, options.own);
  double next = now_s() + 1;  // a short scan needs no message
  options.progress = [&](std::int64_t files) {
    if (const double now = now_s(); now >= next) {
      say(fmt::format("scanning {}: {} files so far", printable(request.data.native()), files));
      next = now + 1;
    }
  };
  return kind.open(request.data, options);
}

tasks::RecipeRequest recipe_request(const train::Options& options, c10::Device device) {
  tasks::RecipeRequest request;
  request.model = options.text_or("model", "");
  request.optimizer = options.text_or("optimizer", "");
  request.own = options.own_values();
  request.batch = std::stoll(options.text_or("batch", "0"));
  request.weights = !options.text_or("weights", "").empty();
  request.cuda = device.is_cuda();
  if (request.cuda && resident::find_gatherer(device.type()) != nullptr) {
    request.device_memory = device::backend_for(device).memory(device).free;
  }
  request.memory = device::host_memory().available;
  return request;
}

train::Facts gather_facts(const Request& request, const tasks::TaskKind& kind, const tasks::OpenData& data,
                          const device::DeviceChoice& choice) {
  const tasks::RecipeRequest asked = recipe_request(request.options, choice.device);
  train::Facts facts;
  facts.train_samples = data.size(tasks::Split::kTrain);
  facts.val_samples = data.size(tasks::Split::kVal);
  facts.cores = own_cores(request.ranks ? request.ranks->size_here() : 1);
  facts.device = choice.device.is_cuda() ? choice.device.str() : "cpu";
  facts.device_reason = choice.reason;
  facts.ranks = request.ranks ? request.ranks->size() : 1;
  facts.ranks_reason = request.ranks_reason;
  facts.task = kind.name();
  facts.task_options = kind.info().options;
  facts.recipe = data.recipe(asked);
  const auto model = std::ranges::find(facts.recipe, "model", &core::PlanRow::key);
  facts.couples_samples = data.couples_samples(!asked.model.empty()          ? asked.model
                                               : model != facts.recipe.end() ? model->value
                                                                             : "");
  return facts;
}

}  // namespace

int own_cores(int ranks_here) { return std::max(1, device::cpu_quota().cores / ranks_here); }

device::DeviceChoice choose_own_device(const Request& request, const train::Plan* saved) {
  std::string wanted = saved != nullptr ? saved->device : request.options.text_or("device", "auto");
  if (wanted == kAllGpus) {
    wanted = "cuda";  // each rank takes its own
  }
  if (!request.ranks || request.ranks->size() == 1) {
    return device::choose_device(wanted);
  }
  if (saved != nullptr && wanted.starts_with("cuda")) {  // rank 0's
    wanted = "cuda";
  }
  const device::Backend* const gpus = device::find_backend(c10::DeviceType::CUDA);
  wanted = device::device_of_rank(wanted, request.ranks->rank_here(), gpus != nullptr ? gpus->device_count() : 0);
  const device::DeviceChoice choice = device::choose_device(wanted);
  if (const std::string why = parallel::why_no_device_group(); choice.device.is_cuda() && !why.empty()) {
    fail<ConfigError>(kWhere, "several ranks cannot train on GPUs here: {}; set device=cpu, or ranks=1", why);
  }
  return choice;
}

OpenedData open_data(const Request& request, const train::Plan* saved, const Say& say) {
  if (request.data.empty()) {
    fail<ConfigError>(kWhere, "no data: give a folder, a table or a text, `stoker train DATA`");
  }
  refuse_runs(request.data);
  const device::DeviceChoice choice = choose_own_device(request, saved);
  std::string reason = "asked for";
  const tasks::TaskKind& kind = choose_kind(request, saved, reason);
  OpenedData opened;
  opened.device = choice.device;
  opened.data = open_kind(kind, request, saved, choice.device.is_cuda(), say);
  opened.facts = gather_facts(request, kind, *opened.data, choice);
  opened.facts.task_reason = reason;
  if (saved != nullptr) {
    opened.facts.couples_samples = opened.data->couples_samples(saved->model);
    train::check_repeatable(*saved, opened.facts);
  }
  opened.plan = saved != nullptr ? *saved : train::resolve(request.options, opened.facts);
  if (opened.plan.device == kAllGpus) {
    train::decide(opened.plan, "device", choice.device.str(), opened.plan.notes.at("device").origin,
                  "one GPU per rank");
  }
  tasks::check_model_of(kind, opened.plan.model);
  return opened;
}

std::unique_ptr<tasks::ReadyTask> settle(OpenedData& opened) {
  return std::move(*std::exchange(opened.data, nullptr)).settle(opened.plan.model, opened.plan.own);
}

}  // namespace stoker::job
