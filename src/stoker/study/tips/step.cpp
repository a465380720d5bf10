// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "stoker/memory/recompute_choice.h"
#include "stoker/study/tips/profiler_switch.h"
#include "stoker/study/tips/step_way.h"
#include "stoker/study/tips/tip_rows.h"

namespace stoker::study {
namespace {

constexpr std::int64_t kLargerBatch = 4;

// A switch around every step.
Way with_anomaly_mode(const TipCase& tip_case) {
  return engine_way(tip_case, {.before = [] { set_anomaly_mode(true); }, .after = [] { set_anomaly_mode(false); }});
}

// On for a block of steps. Its cost includes starting, stopping and the records of all steps.
Way with_profiler(const TipCase& tip_case) {
  StepHabits habits;
  const auto profiler = std::make_shared<ProfilerSwitch>();
  habits.before = [profiler] { profiler->start(); };
  habits.finish = [profiler] { profiler->stop(); };
  return engine_way(tip_case, habits);
}

Tip accumulation(std::string id, std::string title, std::string with, const StepHabits& habits) {
  return {
      .id = std::move(id),
      .title = std::move(title),
      .without = "1 step of 32",
      .with = std::move(with),
      .models = {"resnet34-slim", "resnet34-slim-no-norm"},
      .make = [habits](const TipCase& tip_case, bool on) { return engine_way(tip_case, on ? habits : StepHabits{}); }};
}

}  // namespace

Tip gradients_to_none() {
  return {.id = "grads-to-none",
          .title = "gradients set to none, not zeroed",
          .without = "zero_()",
          .with = "none",
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) { return bare_way(tip_case, /*keep_gradients=*/!on); }};
}

Tip fused_optimizer() {
  return {
      .id = "fused-optimizer",
      .title = "fused optimizer",
      .without = "one parameter at a time",
      .with = "fused kernels",
      .models = listed_models(),
      .make = [](const TipCase& tip_case, bool on) { return engine_way(tip_case, {.optimizer_by_parameter = !on}); }};
}

Tip evaluation_without_gradients() {
  return {.id = "no-grad-evaluation",
          .title = "evaluation without gradients",
          .without = "records a graph",
          .with = "no graph",
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) { return evaluation_way(tip_case, /*record_graph=*/!on); }};
}

Tip anomaly_mode_off() {
  return {.id = "anomaly-mode-off",
          .title = "anomaly mode off",
          .without = "on",
          .with = "off",
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) {
            return on ? engine_way(tip_case, {}) : with_anomaly_mode(tip_case);
          }};
}

Tip profiler_off() {
  return {
      .id = "profiler-off",
      .title = "profiler off",
      .without = "on",
      .with = "off",
      .models = listed_models(),
      .make = [](const TipCase& tip_case, bool on) { return on ? engine_way(tip_case, {}) : with_profiler(tip_case); },
      .counts_bytes = false};  // bytes are counted through the profiler itself
}

Tip recompute_all() {
  return {.id = "recompute-all",
          .title = "recompute=all: activations computed again in backward",
          .without = "kept",
          .with = "recomputed",
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) {
            return engine_way(tip_case, {.step = {.recompute = memory::parse_recompute(on ? "all" : "none")}});
          }};
}

Tip chunked_loss() {
  constexpr std::int64_t kTokens = 166;  // 32 MiB of logits
  return {.id = "chunked-loss",
          .title = "loss_chunk=: logits of a large vocabulary in pieces",
          .without = "512 tokens",
          .with = "pieces of 166",
          .models = {"gpt-50k"},
          .make = [](const TipCase& tip_case, bool on) {
            return engine_way(tip_case, {.model = {.loss_chunk = on ? kTokens : 0}});
          }};
}

Tip optimizer_in_backward() {
  std::vector<std::string> models = listed_models();
  models.emplace_back("gpt-50k");
  return {.id = "optimizer-in-backward",
          .title = "optimizer_in_backward=on: gradients freed singly",
          .without = "after backward",
          .with = "inside",
          .need = Need::kCpu,
          .models = std::move(models),
          .make = [](const TipCase& tip_case, bool on) {
            return engine_way(tip_case, {.step = {.optimizer_in_backward = on}});
          }};
}

Tip accumulation_16x2() {
  return accumulation("accumulation-16x2", "accumulation: 16 x 2 instead of 32 x 1", "1 step of 2 x 16",
                      {.microbatch = 16});
}

Tip accumulation_16x1() {
  return accumulation("accumulation-16x1", "small batches: 16 x 1 instead of 32 x 1", "2 steps of 16", {.steps = 2});
}

Tip larger_batch() {
  return {.id = "larger-batch",
          .title = "batch and learning rate 4 times as large",
          .without = "4 steps",
          .with = "1 step of 4 batches",
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) {
            StepHabits habits{.batches = kLargerBatch};
            habits.steps = on ? 1 : kLargerBatch;
            habits.lr_factor = on ? kLargerBatch : 1;
            return engine_way(tip_case, habits);
          }};
}

}  // namespace stoker::study
