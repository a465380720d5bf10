// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/core/phase.h"
#include "stoker/optim/clip.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/train/pass_loss.h"
#include "stoker/train/pass_seed.h"

namespace stoker::train {
namespace {

bool draws_random_numbers(const core::Trainable& model) {
  for (int segment = 0; segment < model.segments(); ++segment) {
    if (model.draws(segment)) {
      return true;
    }
  }
  return false;
}

c10::Device device_of(const std::vector<core::Parameter>& parameters) {
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().tensor.device();
}

}  // namespace

Step::Step(StepParts parts, StepOptions options)
    : parts_(parts),
      options_(options),
      recompute_(parts.model, options.recompute),
      device_(device_of(parts.model.parameters())),
      terms_(parts.model.loss_names().size()),
      verdict_({parts.model.loss_names(), options.clip, options.autocast == at::kHalf}, device_),
      draws_(draws_random_numbers(parts.model)) {
  if (std::ranges::none_of(parts_.model.parameters(),
                           [](const core::Parameter& each) { return each.tensor.requires_grad(); })) {
    fail<ConfigError>("train.step", "no parameter requires a gradient: every segment is frozen; lower freeze=");
  }
  if (options_.optimizer_in_backward) {
    check_in_backward(options_.clip, parts_.scaler.scaling(), parts_.ranks.size(), device_);
    updates_ = std::make_unique<BackwardUpdates>(parts_.model.parameters(), parts_.optimizer, parts_.scaler);
  }
  if (parts_.ranks.size() > 1) {
    exchange_ = std::make_unique<RankExchange>(parts_.ranks, parts_.model, parts_.stages, options_.bf16_sums);
  }
  if (exchange_ && options_.sync_norms) {
    synchronise_norms();
  }
  if (parts_.stages != nullptr) {
    parallel::Stages& stages = *parts_.stages;
    if (!device_.is_cpu()) {
      fail<ConfigError>("train.step", "stages of a pipeline compute on CPUs only so far; set device=cpu");
    }
    stage_ = std::make_unique<PipelinePasses>(
        parts_.model, stages.pipeline(), recompute_,
        PipelineOptions{stages.first(), stages.last(), options_.autocast, options_.seed});
  }
  norm_ = parts_.model.norm_buffers();
  for (const at::Tensor& buffer : norm_) {
    saved_norm_.push_back(buffer.clone());
  }
}

void Step::synchronise_norms() {
  if (!recompute_.names().empty() || parts_.stages != nullptr) {
    fail<ConfigError>("train.step",
                      "sync_bn=on does not work with recompute=, which would exchange statistics twice, nor with "
                      "pipeline=; remove them, or set sync_bn=off");
  }
  norms_ = std::make_unique<SyncedNorms>(parts_.ranks, parts_.model, device_);
}

Step::Step(core::Trainable& model, const optim::OptimizerOptions& optimizer, StepOptions options,
           core::Communicator* ranks)
    : Step(model,
           std::make_unique<OwnParts>(
               core::SingleRank(), optim::make_optimizer(optimizer, model.parameters()),
               precision::GradScaler({.scaling = options.autocast == at::kHalf}, device_of(model.parameters()))),
           options, ranks) {}

Step::Step(core::Trainable& model, std::unique_ptr<OwnParts> own, const StepOptions& options, core::Communicator* ranks)
    : Step({.model = model,
            .optimizer = *own->optimizer,
            .scaler = own->scaler,
            .ranks = ranks != nullptr ? *ranks : own->alone},
           options) {
  own_ = std::move(own);
}

void Step::compute(const core::Batch& batch, std::int64_t number, std::int64_t microbatch) {
  memory::FixedSplit split(microbatch);
  compute(batch, number, split);
}

void Step::compute(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split) {
  RECORD_USER_SCOPE("step.compute");  // a name for profilers; no cost without one
  memory::FixedSplit whole;
  if (updates_) {
    updates_->check_ready(split.passes(batch.size()));
  }
  save_norm_buffers();
  try {
    exchange_ ? compute_with_ranks(batch, number, split) : compute_whole(batch, number, updates_ ? whole : split);
    computed_ = true;
  } catch (...) {
    drop();
    if (updates_) {
      updates_->explain_failure();
    }
    throw;
  }
}

void Step::compute_whole(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split) {
  const std::int64_t size = batch.size();
  core::Normalisers normalisers;
  memory::until_it_fits(split, size, [&] { normalisers = parts_.model.normalisers(batch); });
  memory::until_it_fits(
      split, size,
      [&] { accumulate_gradients(batch, number, normalisers, std::max<std::int64_t>(1, split.passes(size))); },
      [&] { drop(); });
  memory::until_it_fits(
      split, size, [&] { look_at_gradients(); }, [&] { parts_.scaler.clear(); }, /*after_passes=*/true);
}

// With synchronised norms all ranks take as many passes as the one with the largest part, whatever they would take
// alone; before they have agreed on a limit, none.
std::int64_t Step::passes_of_ranks(const core::Batch& batch, const memory::BatchSplit& split) const {
  if (!norms_) {
    return std::max<std::int64_t>(1, split.passes(batch.size()));
  }
  const std::int64_t largest = (batch.global_size() + parts_.ranks.size() - 1) / parts_.ranks.size();
  const std::optional<std::int64_t> limit = exchange_->agreed_limit();
  return limit ? std::max<std::int64_t>(1, split.passes_under(*limit, largest)) : 0;
}

// A rank that runs out of memory joins the sums with zeros; then all compute the same batch again, in passes that are
// as small as those of the rank with the smallest ones. A rank whose passes changed since the last step joins so, too.
void Step::compute_with_ranks(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split) {
  const std::int64_t size = batch.size();
  for (bool whole = false; !whole;) {
    core::Normalisers normalisers;
    memory::until_it_fits(split, size, [&] { normalisers = parts_.model.normalisers(batch); });
    exchange_->normalise(normalisers, batch.global_size());
    if (stage_) {
      split.limit_to(exchange_->agree(split.limit()));
    }
    bool failed = !stage_ && !exchange_->agreed(split.limit());
    const std::int64_t passes = passes_of_ranks(batch, split);
    exchange_->begin(/*whole=*/!norms_ || size >= passes);
    if (norms_) {
      norms_->begin(passes);
    }
    if (!failed) {
      failed = !compute_part(batch, number, normalisers, split, passes);
    }
    if (norms_) {
      norms_->end();
    }
    agreed_ = own_wishes_ ? own_wishes_() : EndWishes{};
    whole = exchange_->finish({number, split.limit(), failed}, loss_parts_, agreed_);
    split.limit_to(exchange_->limit());
    if (!whole) {
      drop();
    }
  }
  memory::until_it_fits(
      split, size, [&] { look_at_gradients(); }, [&] { parts_.scaler.clear(); }, /*after_passes=*/true);
  look_with_stages();
}

// Whether memory sufficed.
bool Step::compute_part(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                        memory::BatchSplit& split, std::int64_t passes) {
  const std::int64_t size = batch.size();
  try {
    if (stage_) {
      return compute_stage(batch, number, normalisers, passes);
    }
    accumulate_gradients(batch, number, normalisers, passes);
    return true;
  } catch (const std::exception& error) {
    memory::rethrow_unless_out_of_memory(error);
    drop();
    split.ran_out(error, size, false);
    return false;
  }
}

// The segments of this rank; whether memory sufficed on all stages.
bool Step::compute_stage(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                         std::int64_t passes) {
  drop_gradients();
  loss_parts_ = stage_->run({.batch = batch,
                             .number = number,
                             .passes = passes,
                             .normalisers = normalisers,
                             .scale = parts_.scaler.scaling() ? parts_.scaler.current_scale() : at::Tensor(),
                             .last_backward = [this] { exchange_->last_pass(); }});
  return stage_->whole();
}

void Step::accumulate_gradients(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                                std::int64_t passes) {
  const std::int64_t size = batch.size();
  seed_pass(device_, options_.seed, number, batch.first_row(), kNoSegment);
  drop_gradients();  // another Trainable that shares modules may have left some
  loss_parts_ = at::Tensor();
  if (size == 0 && exchange_) {  // a rank may have no samples of a last, smaller batch
    return;
  }
  if (passes == 1) {
    last_pass_ = true;
    forward_backward(batch, number, normalisers);
    return;
  }
  for (std::int64_t pass = 0; pass < passes; ++pass) {  // balanced: sizes differ by at most one
    last_pass_ = pass + 1 == passes;
    const std::int64_t first = pass * size / passes, end = (pass + 1) * size / passes;
    if (first == end) {  // synchronised norms: this rank has fewer samples than passes
      norms_->skip_pass();
      continue;
    }
    forward_backward(batch.slice(first, end), number, normalisers);
  }
}

// All that commit() needs to know of the gradients, so that it allocates nothing.
void Step::look_at_gradients() {
  const core::PhaseScope phase(core::Phase::kClip);
  const at::NoGradGuard no_grad;
  parts_.optimizer.adopt_gradients();
  verdict_.look(loss_parts_, optim::gradients(parts_.model.parameters()), parts_.scaler);
  looked_at_ = fingerprint_of_gradients();
}

// As if the gradients of all stages had been looked at.
void Step::look_with_stages() {
  if (!stage_) {
    return;
  }
  at::Tensor& found_inf = parts_.scaler.found_inf();
  double norm = verdict_.norm();
  bool infinite = core::host_value(found_inf) > 0;
  exchange_->combine(norm, infinite);
  verdict_.replace_norm(norm);
  core::set_host_value(found_inf, infinite ? 1 : 0);
}

std::uint64_t Step::fingerprint_of_gradients() const {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  std::uint64_t result = 0;
  for (const core::Parameter& parameter : parts_.model.parameters()) {
    const at::Tensor& gradient = parameter.tensor.grad();
    result *= kOdd;
    if (gradient.defined()) {
      result += reinterpret_cast<std::uintptr_t>(gradient.unsafeGetTensorImpl()) + kOdd * gradient._version();
    }
  }
  return result;
}

void Step::forward_backward(const core::Batch& part, std::int64_t number, const core::Normalisers& normalisers) {
  if (draws_) {
    seed_pass(device_, options_.seed, number, part.first_row(), kNoSegment);
  }
  const precision::SearchGuard search(part.size(), largest_pass_);
  core::LossTerms terms;
  {
    RECORD_USER_SCOPE("step.forward");
    const core::PhaseScope phase(core::Phase::kForward);
    const bool mixed = options_.autocast != at::kFloat;
    const precision::AutocastGuard autocast(device_.type(), mixed ? options_.autocast : at::kBFloat16, mixed);
    const core::TensorList outputs = recompute_.forward(parts_.model, parts_.model.inputs(part), [&](int segment) {
      seed_pass(device_, options_.seed, number, part.first_row(), static_cast<std::uint32_t>(segment));
    });
    const core::PhaseScope loss(core::Phase::kLoss);
    terms = loss_of_pass(parts_.model, outputs, part, terms_);
  }
  RECORD_USER_SCOPE("step.backward");
  const core::PhaseScope phase(core::Phase::kBackward);
  // GPUs take all collectives in one order, and a rank that failed has them after the norms of the last pass.
  if (exchange_ && last_pass_ && (!norms_ || device_.is_cpu())) {
    exchange_->last_pass();
  }
  const at::Tensor scale = parts_.scaler.scaling() ? parts_.scaler.current_scale() : at::Tensor();
  const core::NormalisedLoss loss = normalise_pass(terms, normalisers, scale, device_);
  if (updates_) {
    BackwardUpdates::check_loss(loss.parts);
    updates_->during([&] { torch::autograd::backward(loss.sums, loss.gradients); });
  } else {
    torch::autograd::backward(loss.sums, loss.gradients);
  }
  const at::NoGradGuard no_grad;
  loss_parts_ = loss_parts_.defined() ? loss_parts_ + loss.parts : loss.parts;
}

void Step::commit(double lr) {
  RECORD_USER_SCOPE("step.commit");
  if (!std::exchange(computed_, false)) {
    fail<ConfigError>("train.step", "commit() needs the gradients of a compute() that succeeded; call compute() first");
  }
  if (fingerprint_of_gradients() != looked_at_) {  // by a program that writes the loop by hand
    parts_.scaler.clear();
    look_at_gradients();
    look_with_stages();
  }
  if (updates_) {
    updates_->finish(lr);
  } else {
    parts_.optimizer.set_lr(lr);
  }
  take();
}

void Step::set_lr(double lr) {
  if (updates_) {
    updates_->set_lr(lr);
  }
}

void Step::take() {
  const core::PhaseScope phase(core::Phase::kClip);
  const at::NoGradGuard no_grad;
  const at::Tensor divisor = verdict_.decide(parts_.scaler, parts_.ema != nullptr ? &parts_.ema->weight() : nullptr);
  keep_norm_buffers_if_skipped();  // before the averages are updated
  if (!updates_) {
    const core::PhaseScope optimizer(core::Phase::kUpdate);
    RECORD_USER_SCOPE("Optimizer.step#Stoker.step");  // the name by which readers of PyTorch's traces know it
    parts_.optimizer.step(parts_.scaler.found_inf(), divisor);
  }
  if (parts_.ema != nullptr) {
    const core::PhaseScope averages(core::Phase::kAverage);
    parts_.ema->apply();
  }
  parts_.scaler.update();
  parts_.scaler.clear();
  drop_gradients();
}

void Step::drop_gradients() {
  for (const core::Parameter& parameter : parts_.model.parameters()) {
    parameter.tensor.mutable_grad() = at::Tensor();
  }
}

void Step::drop() {
  const at::NoGradGuard no_grad;
  drop_gradients();
  parts_.scaler.clear();
  computed_ = false;
  for (std::size_t i = 0; i < norm_.size(); ++i) {
    norm_[i].copy_(saved_norm_[i]);
  }
}

void Step::save_norm_buffers() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < norm_.size(); ++i) {
    saved_norm_[i].copy_(norm_[i]);
  }
}

void Step::keep_norm_buffers_if_skipped() {
  const at::Tensor& skip = verdict_.skip();
  if (core::on_host(skip) && !*skip.const_data_ptr<bool>()) {
    return;
  }
  for (std::size_t i = 0; i < norm_.size(); ++i) {
    at::where_out(norm_[i], skip, saved_norm_[i], norm_[i]);
  }
}

void Step::save_state(core::State& state) const {
  state.tensors["step.skipped"] = verdict_.skipped();
  if (own_) {
    own_->optimizer->save_state(state);
    own_->scaler.save_state(state);
  }
}

void Step::load_state(const core::State& state) {
  if (updates_) {
    updates_->forget();  // the caller restores the weights, too
  }
  core::restore_tensor(verdict_.skipped(), state, "step.skipped");
  if (own_) {
    own_->optimizer->load_state(state);
    own_->scaler.load_state(state);
  }
}

}  // namespace stoker::train
