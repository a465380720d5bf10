// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/session.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/job/memory_advice.h"
#include "stoker/models/network.h"
#include "stoker/optim/sharded.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/pipeline_plan.h"

namespace stoker::job {
namespace {

// The model's own entries of a State: the trained weights, and running statistics.
core::State model_state(const core::Trainable& model) {
  core::State state;
  for (const core::Parameter& parameter : model.parameters()) {
    state.tensors["model." + parameter.name] = parameter.tensor.detach();
  }
  for (const core::NamedTensor& buffer : model.buffers()) {
    state.tensors["model." + buffer.name] = buffer.tensor;
  }
  return state;
}

void restore_model(const core::Trainable& model, const core::State& state) {
  for (const core::Parameter& parameter : model.parameters()) {
    core::restore_tensor(parameter.tensor.detach(), state, "model." + parameter.name);
  }
  for (const core::NamedTensor& buffer : model.buffers()) {
    core::restore_tensor(buffer.tensor, state, "model." + buffer.name);
  }
}

}  // namespace

optim::OptimizerOptions optimizer_options(const train::Plan& plan) {
  optim::OptimizerOptions options;
  options.name = plan.optimizer;
  options.weight_decay = plan.weight_decay;
  options.momentum = plan.momentum;
  options.nesterov = plan.nesterov && plan.momentum > 0;
  options.beta1 = plan.beta1;
  options.beta2 = plan.beta2;
  options.eps = plan.eps;
  return options;
}

Session::Session(Setup& setup, core::EventEmitter* events)
    : setup_(setup),
      recovery_(setup.training_recovery(events)),
      evaluation_recovery_(setup.evaluation_recovery(events)),
      evaluation_memory_(setup.device, events) {
  const train::Plan& plan = setup.plan;
  if (plan.nvtx) {
    nvtx_.emplace();
  }
  tasks::Model& model = *setup.model;
  if (setup.in_stages()) {
    stages_ = std::make_unique<parallel::Stages>(*setup.ranks, model, train::first_segments(plan, model));
    optimizer_ = optim::make_optimizer(optimizer_options(plan), stages_->own_parameters());
  } else if (sharded()) {
    optimizer_ = std::make_unique<optim::ShardedOptimizer>(optimizer_options(plan), model.parameters(), *setup.ranks);
  } else {
    optimizer_ = optim::make_optimizer(optimizer_options(plan), model.parameters());
  }
  scaler_ = std::make_unique<precision::GradScaler>(precision::GradScalerOptions{.scaling = plan.precision == "fp16"},
                                                    setup.device);
  if (plan.ema > 0) {
    ema_ = std::make_unique<optim::Ema>(model.parameters(), model.norm_buffers(), plan.ema);
  }
  train::StepOptions options;
  options.autocast = setup.autocast_dtype();
  options.clip = plan.clip;
  options.recompute = memory::parse_recompute(plan.recompute);
  options.seed = static_cast<std::uint64_t>(plan.seed);
  options.optimizer_in_backward = plan.optimizer_in_backward;
  options.bf16_sums = plan.rank_gradients == "bf16";
  options.sync_norms = plan.sync_bn;
  step_ = std::make_unique<train::Step>(train::StepParts{.model = model,
                                                         .optimizer = *optimizer_,
                                                         .scaler = *scaler_,
                                                         .ranks = *setup.ranks,
                                                         .ema = ema_.get(),
                                                         .stages = stages_.get()},
                                        options);
  for (train::Recovery* each : {&recovery_, &evaluation_recovery_}) {
    each->advise([this] { return memory_advice(setup_, held_bytes()); });
  }
}

HeldBytes Session::held_bytes() const {
  HeldBytes held;
  for (const core::Parameter& each : setup_.model->parameters()) {
    held.weights += static_cast<std::int64_t>(each.tensor.nbytes());
  }
  for (const core::Parameter& each : stages_ ? stages_->own_parameters() : setup_.model->parameters()) {
    const auto bytes = static_cast<std::int64_t>(each.tensor.nbytes());
    held.add_gradient(each.tensor.requires_grad() ? bytes : 0, setup_.plan.optimizer_in_backward);
  }
  held.optimizer = optimizer_->state_bytes();
  held.averages = ema_ ? held.weights : 0;
  return held;
}

void Session::own_storages(memory::StepRecording& recording) const {
  using memory::Category;
  for (const core::Parameter& each : setup_.model->parameters()) {
    recording.own(Category::kParameters, each.tensor);
    recording.own(Category::kGradients, each.tensor.grad());
  }
  const auto own_state = [&](Category category, const core::Stateful& owner) {
    core::State state;  // handles to the live tensors
    owner.save_state(state);
    for (const auto& [name, tensor] : state.tensors) {
      recording.own(category, tensor);
    }
  };
  own_state(Category::kOptimizer, *optimizer_);
  own_state(Category::kOptimizer, *scaler_);
  own_state(Category::kOptimizer, *step_);
  if (ema_) {
    own_state(Category::kAverages, *ema_);
  }
  for (const core::NamedTensor& each : setup_.model->buffers()) {
    recording.own(Category::kBuffers, each.tensor);
  }
  for (const at::Tensor& each : setup_.model->norm_buffers()) {
    recording.own(Category::kBuffers, each);
  }
}

bool Session::sharded() const { return setup_.plan.shard == "optimizer" && setup_.ranks->size() > 1; }

// Once after each step.
void Session::share_weights() {
  if (!stages_ || std::exchange(shared_step_, progress_.step) == progress_.step) {
    return;
  }
  core::TensorList weights;
  for (const core::Parameter& each : setup_.model->parameters()) {
    weights.push_back(each.tensor);
  }
  stages_->share(weights, setup_.model->norm_buffers());
  if (ema_) {
    const auto middle = ema_->averages().begin() + std::ssize(weights);
    stages_->share({ema_->averages().begin(), middle}, {middle, ema_->averages().end()});
  }
}

void Session::collect() {
  share_weights();
  if (stages_ && setup_.ranks->rank() < stages_->count()) {  // other pipelines have the same
    core::State own;
    optimizer_->save_state(own);
    collected_ = stages_->collect(std::move(own));
  } else if (sharded()) {
    collected_ = optimizer_->whole_state();
  }
}

io::Checkpoint Session::checkpoint(const std::string& kind) {
  io::Checkpoint result;
  {
    const at::NoGradGuard no_grad;
    std::optional<optim::Ema::InPlace> averages;
    if (ema_) {
      averages.emplace(*ema_);
    }
    for (auto& [name, tensor] : model_state(*setup_.model).tensors) {
      // While averages are swapped in, these tensors hold them only for this scope: copied.
      result.weights[name.substr(std::string_view("model.").size())] = ema_ ? tensor.clone() : tensor;
    }
  }
  if (kind == "best") {
    mark_best();
  } else {
    if (ema_) {  // else the averages are the weights above
      result.state = model_state(*setup_.model);
    }
    if (scattered()) {
      result.state.tensors.insert(collected_.tensors.begin(), collected_.tensors.end());
    } else {
      optimizer_->save_state(result.state);
    }
    scaler_->save_state(result.state);
    step_->save_state(result.state);
    recovery_.save_state(result.state);
    progress_.save_state(result.state);
    if (ema_) {
      ema_->save_state(result.state);
    }
  }
  ModelCard card = setup_.card();
  card.step = progress_.step;
  card.epoch = progress_.epoch_of_step();
  card.metric_value = std::nan("");
  if (!newest_.empty() && progress_.evaluated_step == progress_.step) {
    card.metric = newest_.front().name;
    card.metric_value = newest_.front().value;
  }
  result.info = to_json(card, setup_.task->card());
  return result;
}

void Session::load(const io::Checkpoint& checkpoint) {
  core::State state = checkpoint.state;
  for (const auto& [name, tensor] : checkpoint.weights) {
    state.tensors.try_emplace("model." + name, tensor);
  }
  restore_model(*setup_.model, state);
  optimizer_->load_state(state);
  scaler_->load_state(state);
  step_->load_state(state);
  recovery_.load_state(state);
  progress_.load_state(state);
  if (ema_) {
    ema_->load_state(state);
  }
  shared_step_ = progress_.step;
}

std::vector<core::MetricValue> Session::evaluate(core::BatchSource& source, train::EvaluationWatch watch) {
  share_weights();
  std::optional<optim::Ema::InPlace> averages;
  if (ema_) {
    averages.emplace(*ema_);
  }
  const train::EvaluationMode mode(*setup_.model);
  evaluation_recovery_.begin_step(progress_.step);
  evaluation_memory_.begin();
  const auto go_on = [&](const core::Batch& batch) {
    evaluation_memory_.batch_done();
    return watch(batch);
  };
  const auto totals =
      train::sum_over_ranks(train::evaluate(*setup_.model, source, setup_.autocast_dtype(),
                                            {.go_on = go_on,
                                             .with_gradients = [this] { evaluation_memory_.with_gradients(); },
                                             .split = &evaluation_recovery_}),
                            *setup_.ranks);
  if (totals.empty()) {
    return {};
  }
  newest_ = setup_.model->metrics(totals);
  return newest_;
}

std::vector<tasks::Exhibit> Session::samples() {
  std::optional<optim::Ema::InPlace> averages;
  if (ema_) {
    averages.emplace(*ema_);
  }
  const train::EvaluationMode mode(*setup_.model);
  return setup_.task->samples(*setup_.model, progress_.step);
}

std::string run_title(const Setup& setup) {
  return fmt::format("{} on {}, {}, {}", setup.plan.model, setup.task->describe(), setup.plan.device,
                     setup.plan.precision);
}

std::string default_run_name(const std::filesystem::path& data, const std::string& model) {
  const std::filesystem::path clean = std::filesystem::absolute(data).lexically_normal();
  std::string name = model + "-" + (clean.has_filename() ? clean.stem() : clean.parent_path().filename()).native();
  for (char& c : name) {
    const bool fits =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    c = fits ? c : '_';
  }
  return name;
}

std::string describe_data(const tasks::TaskData& task) {
  return fmt::format("data: {}; train {}, val {}, test {}", task.describe(), task.size(tasks::Split::kTrain),
                     task.size(tasks::Split::kVal), task.size(tasks::Split::kTest));
}

std::vector<std::string> describe_setup(const Setup& setup) {
  const tasks::TaskData& task = *setup.task;
  std::vector<std::string> lines;
  lines.push_back(describe_data(task));
  lines.push_back(fmt::format("model: {}, {:.2f} M parameters{}", setup.plan.model,
                              static_cast<double>(core::parameter_count(setup.model->parameters())) / 1e6,
                              setup.sample_flops == 0 ? ""
                                                      : fmt::format(", {:.3g} GFLOP per sample forward",
                                                                    static_cast<double>(setup.sample_flops) / 1e9)));
  const device::DeviceFacts facts = device::backend_for(setup.device).describe(setup.device);
  lines.push_back(fmt::format("device: {} ({}), {}, {} per operator, {}", setup.plan.device, facts.name,
                              setup.plan.precision, counted(setup.plan.intra_op, "thread"),
                              counted(setup.plan.threads, "loader thread")));
  lines.insert(lines.end(), setup.notes.begin(), setup.notes.end());
  return lines;
}

}  // namespace stoker::job
