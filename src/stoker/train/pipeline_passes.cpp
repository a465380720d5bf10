// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/pipeline_passes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/parallel/pipeline_schedule.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/train/pass_loss.h"
#include "stoker/train/pass_seed.h"

namespace stoker::train {
namespace {

// The end of this stage's graph, in place of the graph of the stage before: takes the gradients that leave the stage.
// So tensors that enter are no leaves, as in the plain chain: a segment may change them in place.
class Arrival final : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& all) override {
    gradients = std::move(all);
    return {};
  }
  core::TensorList gradients;  // of the tensors that take one
};

std::shared_ptr<Arrival> arrive(const core::TensorList& values, const parallel::ListForm& form) {
  const std::shared_ptr<Arrival> arrival(new Arrival(), torch::autograd::deleteNode);
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i].takes_gradient) {
      torch::autograd::set_history(values[i], arrival);
    }
  }
  arrival->gradients.resize(parallel::gradients_form(form).size());
  return arrival;
}

// Of all that the shapes between segments may depend on.
std::uint64_t shape_key(const core::Batch& part) {
  constexpr std::uint64_t kBasis = 0xCBF29CE484222325, kPrime = 0x100000001B3;  // FNV-1a, 64 bits
  std::uint64_t hash = kBasis;
  const auto mix = [&](std::int64_t value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * kPrime; };
  mix(part.size());
  for (const core::Field& field : part.fields()) {
    mix(static_cast<std::int64_t>(field.values.scalar_type()));
    mix(field.values.dim());
    for (const std::int64_t size : field.values.sizes()) {
      mix(size);
    }
  }
  return hash;
}

core::Batch part_of(const PipelineWork& work, std::int64_t microbatch) {
  const std::int64_t size = work.batch.size();
  return work.batch.slice(microbatch * size / work.passes, (microbatch + 1) * size / work.passes);
}

bool draws_random_numbers(const core::Trainable& model) {
  for (int segment = 0; segment < model.segments(); ++segment) {
    if (model.draws(segment)) {
      return true;
    }
  }
  return false;
}

}  // namespace

// A microbatch between its forward and its backward pass.
struct PipelinePasses::Pass {
  std::shared_ptr<Arrival> arrival;  // null: the first stage
  core::TensorList ends, gradients;  // what backward begins with; gradients: of the last stage
};

PipelinePasses::PipelinePasses(core::Trainable& model, core::Communicator& stages,
                               const memory::RecomputePlan& recompute, PipelineOptions options)
    : model_(model),
      recompute_(recompute),
      options_(options),
      stage_(stages.rank()),
      stages_(stages.size()),
      draws_(draws_random_numbers(model)),
      device_(model.parameters().empty() ? at::Device(at::kCPU) : model.parameters().front().tensor.device()),
      terms_(model.loss_names().size()) {
  if (options.first < 0 || options.first >= options.last || options.last > model.segments() ||
      (stage_ == 0) != (options.first == 0) || (stage_ + 1 == stages_) != (options.last == model.segments())) {
    fail<ConfigError>("train.pipeline", "stage {} of {} cannot be segments {} to {} of {}", stage_ + 1, stages_,
                      options.first, options.last - 1, model.segments());
  }
  if (stage_ > 0) {
    back_.emplace(stages, stage_ - 1);
  }
  if (stage_ + 1 < stages_) {
    ahead_.emplace(stages, stage_ + 1);
  }
}

PipelinePasses::~PipelinePasses() = default;

template <typename Work>
void PipelinePasses::attempt(const Work& work) {
  if (!whole_) {
    return;
  }
  try {
    work();
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    drop_values(std::current_exception());
  }
}

template <typename Work>
void PipelinePasses::insist(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    drop_values(std::current_exception());
    insist_without_values(work);
  }
}

// Memory that is too short even for a message ends this rank, as the others wait for it: an error of another type, so
// that nobody computes the batch again.
template <typename Work>
void PipelinePasses::insist_without_values(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    fail<Error>("train.pipeline", "no memory for the messages of a stage: {}", memory::out_of_memory_reason(error));
  }
}

void PipelinePasses::drop_values(std::exception_ptr error) {
  whole_ = false;
  error_ = error_ ? error_ : std::move(error);
  for (Pass& pass : passes_) {
    pass = {};
  }
  loss_parts_ = at::Tensor();
}

at::Tensor PipelinePasses::run(const PipelineWork& work) {
  whole_ = true;
  error_ = nullptr;
  loss_parts_ = at::Tensor();
  seed_pass(device_, options_.seed, work.number, work.batch.first_row(), kNoSegment);
  const auto passes = static_cast<int>(work.batch.size() == 0 ? 0 : work.passes);
  for (const parallel::PipelineTurn& turn : parallel::one_forward_one_backward(stage_, stages_, passes)) {
    turn.backward ? backward(work, turn.microbatch) : forward(work, turn.microbatch);
  }
  if (back_) {
    const core::PhaseScope phase(core::Phase::kExchange);
    back_->finish();
  }
  if (error_) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  return std::exchange(loss_parts_, at::Tensor());
}

void PipelinePasses::forward(const PipelineWork& work, std::int64_t microbatch) {
  core::Batch part;
  insist([&] { part = part_of(work, microbatch); });
  const std::uint64_t key = shape_key(part);
  Pass pass;
  std::optional<core::TensorList> values;
  if (back_) {
    const core::PhaseScope phase(core::Phase::kExchange);
    insist([&] { values = back_->receive(key); });
    if (!values) {
      drop_values(nullptr);
    }
    attempt([&] { pass.arrival = arrive(*values, *back_->form()); });
    expect_next(work, microbatch + 1);
  }
  attempt([&] {
    const precision::SearchGuard search(part.size(), largest_pass_);
    compute(work, part, values ? std::move(*values) : core::TensorList(), pass);
  });
  passes_.push_back(whole_ ? std::move(pass) : Pass());
  if (ahead_) {
    const core::PhaseScope phase(core::Phase::kExchange);
    insist([&] { ahead_->send(key, whole_ ? &passes_.back().ends : nullptr); });
  }
}

void PipelinePasses::compute(const PipelineWork& work, const core::Batch& part, core::TensorList values, Pass& pass) {
  const auto seed = [&](std::uint32_t segment) {
    seed_pass(device_, options_.seed, work.number, part.first_row(), segment);
  };
  if (draws_ && !back_) {
    seed(kNoSegment);
  }
  RECORD_USER_SCOPE("step.forward");
  const core::PhaseScope phase(core::Phase::kForward);
  core::LossTerms terms;
  {
    const bool mixed = options_.autocast != at::kFloat;
    const precision::AutocastGuard autocast(device_.type(), mixed ? options_.autocast : at::kBFloat16, mixed);
    pass.ends = recompute_.forward_segments(model_, {options_.first, options_.last},
                                            back_ ? std::move(values) : model_.inputs(part),
                                            [&](int segment) { seed(static_cast<std::uint32_t>(segment)); });
    if (ahead_) {
      return;
    }
    const core::PhaseScope loss(core::Phase::kLoss);
    terms = loss_of_pass(model_, pass.ends, part, terms_);
  }
  core::NormalisedLoss loss = normalise_pass(terms, work.normalisers, work.scale, device_);
  pass.ends = std::move(loss.sums);
  pass.gradients = std::move(loss.gradients);
  const at::NoGradGuard no_grad;
  loss_parts_ = loss_parts_.defined() ? loss_parts_ + loss.parts : loss.parts;
}

// The bytes of the next list come beside this pass, if there is room for them.
void PipelinePasses::expect_next(const PipelineWork& work, std::int64_t microbatch) {
  if (whole_ && microbatch < work.passes) {
    try {
      back_->expect(shape_key(part_of(work, microbatch)));
    } catch (const std::exception& error) {
      memory::rethrow_unless_out_of_memory(error);
    }
  }
}

void PipelinePasses::backward(const PipelineWork& work, std::int64_t microbatch) {
  if (ahead_) {
    const core::PhaseScope phase(core::Phase::kExchange);
    std::optional<core::TensorList> gradients;
    insist([&] { gradients = ahead_->receive_gradients(); });
    if (!gradients) {
      drop_values(nullptr);
    } else {
      passes_.front().gradients = std::move(*gradients);
    }
  }
  Pass pass = std::move(passes_.front());
  passes_.pop_front();
  attempt([&] {
    RECORD_USER_SCOPE("step.backward");
    const core::PhaseScope phase(core::Phase::kBackward);
    std::vector<at::Tensor> ends, gradients;
    for (std::size_t i = 0; i < pass.ends.size(); ++i) {
      if (pass.gradients[i].defined()) {
        ends.push_back(std::move(pass.ends[i]));
        gradients.push_back(std::move(pass.gradients[i]));
      }
    }
    if (microbatch + 1 == work.passes && work.last_backward) {
      work.last_backward();
    }
    if (!ends.empty()) {
      torch::autograd::backward(ends, gradients);
    }
  });
  if (back_) {
    const core::PhaseScope phase(core::Phase::kExchange);
    insist([&] { back_->send_gradients(whole_ ? &pass.arrival->gradients : nullptr); });
  }
}

}  // namespace stoker::train
