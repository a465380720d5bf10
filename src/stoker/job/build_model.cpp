// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/build_model.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "stoker/base/bytes_text.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/smoke_check.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/setup.h"

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

models::LoadReport load_weights(tasks::Model& model, const std::string& path) {
  const auto weights = read_weights(path);  // errors name the file
  try {
    return model.load(weights);
  } catch (const CheckpointError& error) {
    fail<CheckpointError>(kWhere, "weights={}: {}", printable(path), error.what());
  }
}

// freeze_norm=on keeps the statistics of the weights, so they must have some.
void freeze_statistics(tasks::Model& model, const train::Plan& plan, const models::LoadReport& loaded) {
  if (model.norm_buffers().empty()) {
    fail<ConfigError>(kWhere, "freeze_norm=on, but {} has no batch norm; remove it", plan.model);
  }
  for (const std::vector<std::string>* absent : {&loaded.missing, &loaded.wrong_shape}) {
    for (const std::string& each : *absent) {
      if (each.find("running_") != std::string::npos) {
        fail<ConfigError>(kWhere,
                          "freeze_norm=on keeps the statistics of weights={}, which has none that fit (\"{}\"); remove "
                          "freeze_norm, or set the model= and norm= of the weights",
                          printable(plan.weights), printable(each));
      }
    }
  }
  model.freeze_statistics();
}

}  // namespace

std::unique_ptr<tasks::Model> build_model(Setup& setup) {
  const train::Plan& plan = setup.plan;
  tasks::ModelRequest request;
  request.name = plan.model;
  request.seed = static_cast<std::uint64_t>(plan.seed);
  request.channels_last = plan.layout == "channels_last";
  auto model = setup.task->make_model(request);
  models::LoadReport loaded;
  if (!plan.weights.empty()) {
    loaded = load_weights(*model, plan.weights);
    setup.notes.push_back(fmt::format("weights={}: {}", printable(plan.weights), loaded.text()));
  }
  model->set_frozen(static_cast<int>(plan.freeze));
  if (plan.freeze_norm) {
    freeze_statistics(*model, plan, loaded);
  }
  setup.sample_flops = setup.task->sample_flops(*model);  // on the CPU, since a GPU would search for kernels first
  model->to(setup.device);
  return model;
}

void require_room(const Setup& setup) {
  const std::int64_t limit = setup.plan.memory_limit;
  if (limit == 0) {
    return;
  }
  const HeldBytes held = held_by_run(setup);
  const std::int64_t stages = setup.plan.pipeline;  // each holds at least its share
  const std::int64_t need = held.weights + (held.gradients + held.optimizer) / stages + held.averages;
  if (need > limit) {
    fail<ConfigError>(kWhere,
                      "memory_limit={} is too small: the weights of {} take {}, and with gradients, {} and averages it "
                      "is {} before the first activation; raise it, or set {}a smaller model=",
                      bytes_text(limit), setup.plan.model, bytes_text(held.weights), setup.plan.optimizer,
                      bytes_text(need), stages > 1 ? "a larger pipeline= or " : "");
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

}  // namespace stoker::job
