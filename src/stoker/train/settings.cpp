// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/parse_value.h"
#include "stoker/optim/schedule.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.options";
constexpr std::int64_t kMany = 1'000'000'000;  // steps: more than any run has

// "90", "90s", "15m", "1.5h" in seconds.
double parse_duration(std::string_view key, std::string_view text, double high) {
  double unit = 1;
  std::string_view number = text;
  if (!text.empty() && (text.back() == 's' || text.back() == 'm' || text.back() == 'h')) {
    unit = text.back() == 's' ? 1 : text.back() == 'm' ? 60 : 3600;
    number = text.substr(0, text.size() - 1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      !(value >= 0 && unit * value <= high)) {
    refuse_value(key, text, fmt::format("a time such as 90s, 15m or 2h, at most {}h", high / 3600));
  }
  return unit * value;
}

Setting whole(std::string_view key, Group group, std::int64_t Plan::*field, std::int64_t low, std::int64_t high,
              std::string_view fallback, std::string_view why) {
  return {key,
          group,
          fmt::format("{} ... {}", low, high),
          fallback,
          why,
          [=](Plan& plan, std::string_view text) { plan.*field = parse_whole(key, text, low, high); },
          [=](const Plan& plan) { return std::to_string(plan.*field); }};
}

Setting real(std::string_view key, Group group, double Plan::*field, double low, double high, std::string_view fallback,
             std::string_view why, bool duration = false) {
  return {key,
          group,
          duration ? "90s, 15m, 2h" : fmt::format("{} ... {}", low, high),
          fallback,
          why,
          [=](Plan& plan, std::string_view text) {
            plan.*field = duration ? parse_duration(key, text, high) : parse_real(key, text, low, high);
          },
          [=](const Plan& plan) { return fmt::format("{}", plan.*field); }};
}

Setting choice(std::string_view key, Group group, std::string Plan::*field, std::vector<std::string> names,
               std::string_view fallback, std::string_view why) {
  const std::string listed = fmt::format("{}", fmt::join(names, "|"));
  return {key,
          group,
          listed,
          fallback,
          why,
          [=](Plan& plan, std::string_view text) { plan.*field = parse_choice(key, text, names); },
          [=](const Plan& plan) { return plan.*field; }};
}

Setting text_field(
    std::string_view key, Group group, std::string Plan::*field, std::string_view values, std::string_view fallback,
    std::string_view why, std::function<bool(std::string_view)> valid = [](std::string_view) { return true; }) {
  return {key,
          group,
          std::string(values),
          fallback,
          why,
          [=](Plan& plan, std::string_view text) {
            if (!valid(text)) {
              refuse_value(key, text, values);
            }
            plan.*field = text;
          },
          [=](const Plan& plan) { return plan.*field; }};
}

Setting yes_no(std::string_view key, Group group, bool Plan::*field, std::string_view fallback, std::string_view why) {
  return {key,
          group,
          "on|off",
          fallback,
          why,
          [=](Plan& plan, std::string_view text) { plan.*field = parse_flag(key, text); },
          [=](const Plan& plan) { return plan.*field ? "on" : "off"; }};
}

bool valid_device(std::string_view text) {
  if (text == "cpu" || text == "cuda") {
    return true;
  }
  if (!text.starts_with("cuda:") || text.size() < 6 || text.size() > 7) {
    return false;
  }
  return std::ranges::all_of(text.substr(5), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<Setting> run_settings() {
  constexpr Group B = Group::kBehaviour;
  const auto non_empty = [](std::string_view text) { return !text.empty(); };
  return {
      text_field("task", B, &Plan::task, "a name that `stoker info tasks` lists", "by what the data is",
                 "what is learnt from the data", non_empty),
      text_field("model", B, &Plan::model, "a name that `stoker info models` lists", "by the recipe", "the network",
                 non_empty),
      text_field("weights", B, &Plan::weights, "a .safetensors file, a checkpoint or a run folder", "from scratch",
                 "start from these weights; a head of another class count is made new",
                 {[](std::string_view) { return true; }}),
      whole("freeze", B, &Plan::freeze, 0, 1000, "0", "leading segments that keep their weights"),
      whole("epochs", B, &Plan::epochs, 1, 1'000'000, "by the model's recipe", "passes over the training split"),
      whole("steps", B, &Plan::steps, 0, kMany, "0: as the epochs make them", "optimizer steps; overrides epochs"),
      real("time", B, &Plan::time, 0, 3600.0 * 24 * 365, "0: no limit",
           "of training: as many epochs as end within it; the default network may get wider; with epochs= or steps= it "
           "only stops it",
           true),
      whole("batch", B, &Plan::batch, 1, 1 << 20, "by the recipe and the size of the data",
            "samples an optimizer step"),
      whole("seed", B, &Plan::seed, 0, std::numeric_limits<std::int64_t>::max(), "1",
            "weights, order and augmentation follow it"),
  };
}

std::vector<Setting> optimizer_settings() {
  constexpr Group B = Group::kBehaviour;
  return {
      real("lr", B, &Plan::lr, 1e-12, 1e4, "by the recipe", "peak learning rate for a batch of lr_batch"),
      choice("lr_scale", B, &Plan::lr_scale, {"linear", "sqrt", "none"}, "linear for sgd, sqrt for adam and adamw",
             "how lr grows from lr_batch to batch"),
      whole("lr_batch", B, &Plan::lr_batch, 1, 1 << 20, "by the recipe", "the batch that lr is stated for"),
      choice("optimizer", B, &Plan::optimizer, {"sgd", "adam", "adamw"}, "by the recipe", "update rule, fused"),
      real("optimizer.momentum", B, &Plan::momentum, 0, 0.9999, "0.9", "sgd: 0 is plain sgd"),
      yes_no("optimizer.nesterov", B, &Plan::nesterov, "on", "sgd: look ahead along the momentum"),
      real("optimizer.beta1", B, &Plan::beta1, 0, 0.999999, "0.9", "adam, adamw: decay of the first moment"),
      real("optimizer.beta2", B, &Plan::beta2, 0, 0.999999, "by the recipe, else 0.999",
           "adam, adamw: decay of the second moment"),
      real("optimizer.eps", B, &Plan::eps, 1e-16, 1, "1e-8", "adam, adamw: added to the root of the second moment"),
      real("weight_decay", B, &Plan::weight_decay, 0, 10, "by the recipe", "on weights, never on norms and biases"),
      choice("schedule", B, &Plan::schedule, optim::known_schedules(), "by the recipe", "learning rate over the run"),
      whole("schedule_steps", B, &Plan::schedule_steps, 0, kMany, "0: as long as the run",
            "length of the schedule; later steps keep its last value"),
      real("warmup", B, &Plan::warmup, 0, 1e9, "by the recipe", "steps of rising lr; below 1 a share of the run"),
      real("lr_end", B, &Plan::lr_end, 0, 1, "by the recipe, else 0",
           "cosine, linear: share of the peak lr that is left at the end"),
      real("ema", B, &Plan::ema, 0, 0.999999, "by the recipe",
           "decay of averaged weights that evaluation uses; 0 is off"),
      real("clip", B, &Plan::clip, 0, 1e9, "by the recipe, else 0: off", "largest gradient norm"),
  };
}

std::vector<Setting> evaluation_settings() {
  constexpr Group B = Group::kBehaviour;
  return {
      whole("early_stop", B, &Plan::early_stop, 0, 1'000'000, "0: off",
            "stop after this many evaluations without a gain"),
      whole("eval_every", B, &Plan::eval_every, 0, kMany, "by the recipe, else 0: once an epoch",
            "steps between evaluations"),
      whole("save_every", B, &Plan::save_every, 0, kMany, "0: once an epoch", "steps between checkpoints"),
      whole("skip_limit", B, &Plan::skip_limit, 0, 1'000'000, "10",
            "non-finite steps in a row that are skipped before the run stops"),
      real("val", B, &Plan::val, 0, 0.9, "0.1", "share of train that validates where there is no validation split"),
      choice("tail", B, &Plan::tail, {"keep", "drop"}, "keep", "the last, smaller batch of an epoch"),
  };
}

std::vector<Setting> performance_settings() {
  constexpr Group P = Group::kPerformance;
  return {
      text_field("device", P, &Plan::device, "cpu, cuda or cuda:N", "cuda where there is one, else cpu",
                 "where it runs", valid_device),
      choice("precision", P, &Plan::precision, {"fp32", "bf16", "fp16"}, "the fastest in a timed trial",
             "dtype of convolutions and products"),
      yes_no("half_weights", P, &Plan::half_weights, "off",
             "weights in bf16 or fp16 too, norms in fp32; the optimizer keeps fp32 masters"),
      whole("microbatch", P, &Plan::microbatch, 1, 1 << 20, "the batch",
            "samples a forward pass; gradients add up exactly"),
      whole("threads", P, &Plan::threads, 0, 256, "by a timed trial",
            "loader threads, fixed if asked for, else where a search begins; 0 loads between steps"),
      whole("intra_op", P, &Plan::intra_op, 1, 1024, "measured: the fewest that are within 15 % of the best",
            "threads of one operator"),
      choice("layout", P, &Plan::layout, {"channels_last", "contiguous"},
             "on a CPU by a timed trial, else channels_last", "memory order of images and convolutions"),
      yes_no("tf32", P, &Plan::tf32, "on", "CUDA: products of fp32 in TensorFloat-32"),
      yes_no("cudnn_benchmark", P, &Plan::cudnn_benchmark, "on for fixed shapes",
             "CUDA: try convolution algorithms, keep the fastest"),
      yes_no("deterministic", P, &Plan::deterministic, "on for the CPU, off for CUDA",
             "only algorithms that repeat to the bit"),
      yes_no("anomaly", P, &Plan::anomaly, "off", "slow: name the operator whose backward makes a NaN, and stop"),
      choice("tensorboard", P, &Plan::tensorboard, {"off", "on", "histograms"}, "on",
             "event files for TensorBoard in the run folder; histograms: of the weights too"),
      yes_no("nvtx", P, &Plan::nvtx, "off", "CUDA: names of operators and phases for Nsight Systems"),
  };
}

}  // namespace

std::span<const Setting> settings() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> all = run_settings();
    std::ranges::move(optimizer_settings(), std::back_inserter(all));
    std::ranges::move(evaluation_settings(), std::back_inserter(all));
    std::ranges::move(performance_settings(), std::back_inserter(all));
    return all;
  }();
  return table;
}

const Setting* find_setting(std::string_view key) {
  const auto all = settings();
  const auto found = std::ranges::find(all, key, &Setting::key);
  return found == all.end() ? nullptr : &*found;
}

const Setting& setting(std::string_view key) {
  const Setting* found = find_setting(key);
  if (found == nullptr) {
    fail<ConfigError>(kWhere, "there is no option \"{}\"", printable(key));
  }
  return *found;
}

void set_value(Plan& plan, std::string_view key, std::string_view value) {
  if (const Setting* known = find_setting(key)) {
    known->parse(plan, value);
  } else {
    plan.own.insert_or_assign(std::string(key), std::string(value));
  }
}

void Options::check(std::string_view key, std::string_view value) const {
  const Setting* known = find_setting(key);
  const auto own = std::ranges::find(own_, key, &core::TaskSetting::key);
  if (known != nullptr || own != own_.end()) {
    Plan scratch;
    if (value != "auto") {
      known != nullptr ? known->parse(scratch, value) : own->check(value);
    }
    return;
  }
  std::vector<std::string> names;
  for (const Setting& each : settings()) {
    names.emplace_back(each.key);
  }
  for (const core::TaskSetting& each : own_) {
    names.push_back(each.key);
  }
  const std::string near = near_name(key, names);
  fail<ConfigError>(kWhere, "unknown option \"{}\"{}; `stoker train --help` lists them", printable(key),
                    near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near));
}

void Options::set(std::string_view key, std::string_view value, core::Origin origin) {
  check(key, value);
  if (value == "auto") {
    asked_.erase(std::string(key));
  } else {
    asked_.insert_or_assign(std::string(key), Asked{std::string(value), origin});
  }
}

core::TaskValues Options::own_values() const {
  core::TaskValues values;
  for (const auto& [key, asked] : asked_) {
    if (find_setting(key) == nullptr) {
      values.emplace(key, asked.value);
    }
  }
  return values;
}

void Options::set_assignment(std::string_view assignment, core::Origin origin) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail<ConfigError>(kWhere, "expected key=value, got \"{}\"", printable(assignment));
  }
  set(assignment.substr(0, equals), assignment.substr(equals + 1), origin);
}

const Options::Asked* Options::find(std::string_view key) const {
  const auto found = asked_.find(key);
  return found == asked_.end() ? nullptr : &found->second;
}

}  // namespace stoker::train
