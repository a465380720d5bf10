// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/resolve.h"

#include <algorithm>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/base/nearest.h"
#include "stoker/train/pipeline_plan.h"
#include "stoker/train/plan_options.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.resolve";
using core::Origin;

// The engine's defaults that depend on data or machine; defaults that depend on the model are in the task's recipe.
void put_defaults_of_facts(Plan& plan, const Facts& facts) {
  const auto put_default = [&](std::string_view key, std::string_view value, std::string reason) {
    decide(plan, key, value, Origin::kDefault, std::move(reason));
  };
  const bool cuda = facts.device.starts_with("cuda");
  put_default("task", facts.task, facts.task_reason);
  put_default("device", facts.device, facts.device_reason);
  put_default("precision", "fp32", "not measured");
  put_default("threads", "0", "not measured");
  put_default("intra_op", std::to_string(facts.cores), fmt::format("{} cores, no loader threads", facts.cores));
  put_default("layout", "channels_last", "best on GPUs and for long steps; not measured");
  put_default("deterministic", cuda ? "off" : "on", cuda ? "atomics are faster" : "costs nothing on the CPU");
}

void put_given(Plan& plan, const Options& options) {
  for (const auto& [key, given] : options.all()) {
    decide(plan, key, given.value, given.origin, "asked for");
  }
}

// A starter decides how many there are.
void put_ranks(Plan& plan, const Options& options, const Facts& facts) {
  if (options.find("ranks") != nullptr) {
    return;
  }
  if (facts.ranks > 1) {
    decide(plan, "ranks", std::to_string(facts.ranks), Origin::kDefault, facts.ranks_reason);
  } else if (plan.pipeline > 1) {
    decide(plan, "ranks", std::to_string(plan.pipeline), Origin::kDefault, "one for each stage of the pipeline");
  }
}

void check_sync_bn(const Plan& plan, const Options& options) {
  if (!plan.sync_bn || plan.ranks == 1) {
    return;
  }
  if (plan.recompute != "none" || options.is_auto("recompute")) {
    fail<ConfigError>(kWhere,
                      "sync_bn=on does not work with recompute=, which would exchange statistics twice; set "
                      "recompute=none, or sync_bn=off");
  }
  if (plan.pipeline > 1) {
    fail<ConfigError>(kWhere, "sync_bn=on does not work with pipeline={}; remove one of them", plan.pipeline);
  }
}

void check_ranks(const Plan& plan) {
  if (replicas(plan) > plan.batch) {
    fail<ConfigError>(kWhere, "a batch of {} is too small for {} ranks; set batch={} or more", plan.batch,
                      replicas(plan), replicas(plan));
  }
  if (plan.ranks > 1 && plan.apply == "doctor") {
    fail<ConfigError>(kWhere, "apply=doctor tries its changes in one process, but there are {} ranks; remove it",
                      plan.ranks);
  }
}

void choose_batch(Plan& plan, const Options& options, const Facts& facts) {
  if (plan.batch > facts.train_samples) {
    if (options.find("batch") != nullptr) {
      fail<ConfigError>(kWhere, "batch {} is larger than the {} training samples; set batch={} or less", plan.batch,
                        facts.train_samples, facts.train_samples);
    }
    decide(plan, "batch", std::to_string(facts.train_samples), Origin::kDefault, "all training samples");
  }
  if (options.find("microbatch") == nullptr) {
    put_microbatch(plan, facts);
  } else if (plan.microbatch > plan.batch) {
    fail<ConfigError>(kWhere, "microbatch {} is larger than batch {}", plan.microbatch, plan.batch);
  }
  if (options.find("lr_scale") == nullptr) {
    const bool sgd = plan.optimizer == "sgd";
    decide(plan, "lr_scale", sgd ? "linear" : "sqrt", Origin::kDefault,
           sgd ? "usual for sgd" : "usual for adam and adamw");
  }
}

// The size of the smallest microbatch when samples are split evenly.
std::int64_t smallest_part(std::int64_t samples, std::int64_t microbatch) {
  const std::int64_t parts = (samples + microbatch - 1) / microbatch;
  return samples / parts;
}

// What an optimizer inside backward cannot work with, and the remedy; empty: nothing.
std::string excluded_in_backward(const Plan& plan, const Options& options) {
  for (const char* key : {"batch", "microbatch", "recompute"}) {
    if (options.is_auto(key)) {
      return fmt::format("{0}=auto, whose search counts all gradients; remove {0}=auto", key);
    }
  }
  if (plan.microbatch < plan.batch) {
    return fmt::format("microbatch={} below batch={}, which accumulates gradients; remove microbatch", plan.microbatch,
                       plan.batch);
  }
  if (!plan.microbatch_schedule.empty()) {
    return "microbatch_schedule=, which accumulates gradients; remove it";
  }
  if (plan.clip > 0) {
    return fmt::format("clip={:g}, which needs the norm of all gradients; set clip=0", plan.clip);
  }
  if (plan.precision == "fp16") {
    return "precision=fp16, whose gradient scaler skips steps; set precision=bf16";
  }
  if (options.find("skip_limit") != nullptr && plan.skip_limit > 0) {
    return fmt::format("skip_limit={}, as no step can be skipped; remove skip_limit", plan.skip_limit);
  }
  if (plan.ranks > 1) {
    return fmt::format("ranks={}, which sum all gradients; train on one rank", plan.ranks);
  }
  return plan.device == "cpu" ? "" : fmt::format("device={}; set device=cpu", plan.device);
}

void check_optimizer_in_backward(Plan& plan, const Options& options) {
  if (!plan.optimizer_in_backward) {
    return;
  }
  if (const std::string other = excluded_in_backward(plan, options); !other.empty()) {
    fail<ConfigError>(kWhere, "optimizer_in_backward=on does not work with {}, or set optimizer_in_backward=off",
                      other);
  }
  decide(plan, "skip_limit", "0", Origin::kDefault, "optimizer_in_backward=on cannot skip a step");
}

// A program's own defaults may name anything; the plan takes an unknown key for a task's.
void check_known(const std::string& key, const std::vector<core::Option>& task_options) {
  std::vector<core::Option> all = plan_options().options();
  all.insert(all.end(), task_options.begin(), task_options.end());
  if (core::find_option(all, key) == nullptr) {
    fail<ConfigError>(kWhere, "{}",
                      unknown_name("option", key, core::near_option(key, all), "a default of the task sets it"));
  }
}

}  // namespace

void decide(Plan& plan, std::string_view key, std::string_view value, Origin origin, std::string reason) {
  set_value(plan, key, value);
  plan.notes.insert_or_assign(std::string(key), Plan::Note{origin, std::move(reason)});
}

bool couples_samples(const Plan& plan, const Facts& facts) { return facts.couples_samples && !plan.freeze_norm; }

// Batch norm cannot train on one sample, neither in a last batch nor in a microbatch.
void choose_tail(Plan& plan, const Options& options, const Facts& facts) {
  if (!couples_samples(plan, facts)) {
    return;
  }
  if (smallest_part(plan.batch, plan.microbatch) < 2) {
    fail<ConfigError>(
        kWhere,
        "{} has batch norm, which cannot train on 1 sample at a time, but batch={} microbatch={} does so; set "
        "both to 2 or more",
        plan.model, plan.batch, plan.microbatch);
  }
  if (smallest_pass(plan, facts.train_samples) > 1) {
    return;
  }
  if (options.find("tail") != nullptr) {
    fail<ConfigError>(
        kWhere,
        "{} samples in batches of {} leave a last forward pass of 1 sample, which batch norm cannot train "
        "on; set tail=drop",
        facts.train_samples, plan.batch);
  }
  decide(plan, "tail", "drop", Origin::kAdvice, "the last forward pass would have 1 sample, too few for batch norm");
}

Plan default_plan(const std::vector<core::Option>& task_options) {
  Plan plan;
  for (const std::vector<core::Option>* options : {&plan_options().options(), &task_options}) {
    for (const core::Option& each : *options) {
      if (each.fallback.value) {
        decide(plan, each.key, *each.fallback.value, Origin::kDefault, each.fallback.reason);
      }
    }
  }
  return plan;
}

Plan resolve(const Options& options, const Facts& facts) {
  if (facts.train_samples < 1) {
    fail<ConfigError>(kWhere, "there are no training samples");
  }
  Plan plan = default_plan(facts.task_options);
  put_defaults_of_facts(plan, facts);
  for (const core::PlanRow& row : facts.recipe) {
    check_known(row.key, facts.task_options);
    decide(plan, row.key, row.value, row.origin, row.reason);
  }
  put_given(plan, options);
  put_ranks(plan, options, facts);
  check_pipeline(plan, options);
  choose_batch(plan, options, facts);
  check_ranks(plan);
  check_sync_bn(plan, options);
  choose_tail(plan, options, facts);
  check_optimizer_in_backward(plan, options);
  if (plan.freeze > 0 && plan.weights.empty()) {
    fail<ConfigError>(kWhere, "freeze={} would freeze random weights; set weights=FILE too", plan.freeze);
  }
  if (plan.freeze_norm && plan.weights.empty()) {
    fail<ConfigError>(kWhere, "freeze_norm=on would keep statistics of no data; set weights=FILE too");
  }
  if (plan.early_stop > 0 && facts.val_samples == 0) {
    fail<ConfigError>(kWhere, "early_stop={} needs a validation split, but there is none; set val=0.1",
                      plan.early_stop);
  }
  if (plan.precision == "fp16" && plan.device == "cpu") {
    plan.notes["precision"].reason += "; warning: most CPUs compute fp16 many times slower than fp32";
  }
  if (plan.nvtx && plan.device == "cpu") {
    fail<ConfigError>(kWhere, "nvtx=on marks the timeline of a GPU, but the device is cpu; remove it");
  }
  if (plan.nvtx && !plan.profile.empty()) {
    fail<ConfigError>(kWhere, "nvtx=on and profile={} both use torch's profiler; remove one of them", plan.profile);
  }
  if (plan.half_weights && options.find("precision") != nullptr && plan.precision == "fp32") {
    fail<ConfigError>(kWhere, "half_weights needs a half precision; set precision=bf16, or half_weights=off");
  }
  if (options.find("intra_op") == nullptr && options.find("threads") != nullptr) {
    const auto left = std::max<std::int64_t>(1, facts.cores - plan.threads);
    decide(plan, "intra_op", std::to_string(left), Origin::kDefault,
           fmt::format("{} cores minus {} loader threads", facts.cores, plan.threads));
  }
  if (plan.intra_op + plan.threads > facts.cores && plan.device == "cpu" && plan.threads > 0) {
    plan.notes["threads"].reason +=
        fmt::format("; warning: {} + {} threads compete for {} cores", plan.intra_op, plan.threads, facts.cores);
  }
  return plan;
}

void check_repeatable(const Plan& plan, const Facts& facts) {
  if (plan.batch > facts.train_samples) {
    fail<ConfigError>(
        kWhere, "the plan's batch of {} is larger than the {} training samples; make a new plan with batch={} or less",
        plan.batch, facts.train_samples, facts.train_samples);
  }
  if (couples_samples(plan, facts) && smallest_pass(plan, facts.train_samples) < 2) {
    fail<ConfigError>(
        kWhere,
        "the plan's batches of {} in microbatches of {} leave a last forward pass of 1 of {} samples, which "
        "batch norm cannot train on; make a new plan",
        plan.batch, plan.microbatch, facts.train_samples);
  }
}

std::int64_t smallest_pass(const Plan& plan, std::int64_t train_samples) {
  const std::int64_t tail = plan.tail == "drop" ? 0 : train_samples % plan.batch;
  const std::int64_t whole = smallest_part(plan.batch, plan.microbatch);
  return tail == 0 ? whole : std::min(whole, smallest_part(tail, plan.microbatch));
}

std::int64_t steps_per_epoch(const Plan& plan, std::int64_t train_samples) {
  return plan.tail == "drop" ? std::max<std::int64_t>(1, train_samples / plan.batch)
                             : (train_samples + plan.batch - 1) / plan.batch;
}

std::int64_t total_steps(const Plan& plan, std::int64_t train_samples) {
  return plan.steps > 0 ? plan.steps : plan.epochs * steps_per_epoch(plan, train_samples);
}

}  // namespace stoker::train
