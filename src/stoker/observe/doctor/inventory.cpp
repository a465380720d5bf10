// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/inventory.h"

#include "stoker/base/fmt.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

// Collects rows of what the records tell.
class Rows {
 public:
  explicit Rows(const Facts& facts) : facts_(facts) {}

  // A word "true" or "false" (or "on", "off"). wanted: what it should be, "on" or "off"; empty: either may be right.
  void flag(const char* word, const char* name, std::string_view wanted, std::string_view rule = {}) {
    const std::string_view text = facts_.word(word);
    if (text.empty()) {
      return;
    }
    const bool on = text == "true" || text == "on";
    add(name, on ? "on" : "off", wanted.empty() || (wanted == "on") == on ? "" : std::string(wanted), rule);
  }

  void add(std::string name, std::string value, std::string wanted, std::string_view rule = {}) {
    rows_.push_back({.name = std::move(name), .value = std::move(value), .wanted = std::move(wanted), .rule = rule});
  }

  // What would set the last row's switch, unless it is as it should be.
  void try_with(std::string option, bool wrong, bool changes_results = false) {
    if (wrong) {
      rows_.back().option = std::move(option);
      rows_.back().changes_results = changes_results;
    }
  }

  std::vector<Switch> take() { return std::move(rows_); }

 private:
  const Facts& facts_;
  std::vector<Switch> rows_;
};

constexpr double kElsewhere = 0.5;  // cores that other programs use: as rules/neighbour.cpp

// Variables that change how fast a training is; all of them are for looking for faults.
constexpr const char* kDebugVariables[] = {"CUDA_LAUNCH_BLOCKING",           "NCCL_BLOCKING_WAIT",
                                           "TORCH_NCCL_BLOCKING_WAIT",       "TORCH_DISTRIBUTED_DEBUG",
                                           "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTHONDEVMODE"};

bool is_set(std::string_view value) { return !value.empty() && value != "0" && value != "OFF"; }

void add_environment(const Facts& facts, Rows& rows) {
  for (const char* name : kDebugVariables) {
    if (const std::string_view value = facts.word(fmt::format("switch.environment.{}", name)); is_set(value)) {
      rows.add(name, std::string(value), "unset");
    }
  }
}

// Which layout and which algorithm is faster, a measurement tells.
void add_convolutions(const Facts& facts, bool gpu, Rows& rows) {
  if (gpu) {
    rows.flag("switch.cudnn_benchmark", "cudnn.benchmark", "on");
    rows.try_with("torch.backends.cudnn.benchmark=True", facts.word("switch.cudnn_benchmark") == "false");
  }
  const double filters = facts.figure("switch.optimizer.filters").value_or(0);
  if (filters > 0) {
    const bool last = facts.figure("switch.optimizer.filters_channels_last").value_or(0) > 0;
    rows.add("layout of convolutions", last ? "channels_last" : "contiguous", "");
    rows.try_with("memory_format=torch.channels_last", !last, true);
  }
}

std::vector<Switch> of_script(const Facts& facts) {
  Rows rows(facts);
  const std::string_view cuda = facts.word("switch.cuda");
  const bool gpu = !cuda.empty() && cuda != "false";
  rows.flag("switch.anomaly", "anomaly detection", "off", "debug_apis_on");
  rows.flag("switch.profiler", "profiler", "off", "debug_apis_on");
  rows.flag("switch.deterministic", "deterministic algorithms", "");
  if (facts.word("switch.deterministic") == "true") {  // without it, the fill has no effect
    rows.flag("switch.fill_uninitialized", "fill of new tensors", "off");
  }
  if (gpu) {
    const std::string_view precision = facts.word("switch.matmul_precision");
    rows.add("float32 matmul precision", std::string(precision), precision == "highest" ? "high (TF32)" : "");
    rows.try_with("torch.set_float32_matmul_precision('high')", precision == "highest", true);
    rows.flag("switch.cudnn_tf32", "TF32 in convolutions", "on");
  }
  add_convolutions(facts, gpu, rows);
  if (const auto biased = facts.figure("layers.biased_before_norm")) {
    rows.add("bias of convolutions before a norm", *biased > 0 ? "on" : "off", *biased > 0 ? "off" : "",
             "conv_bias_before_norm");
  }
  if (!facts.word("switch.optimizer.name").empty()) {
    const bool fused = facts.word("switch.optimizer.fused") == "true";
    const std::string_view name = facts.word("switch.optimizer.name");
    rows.add(fmt::format("fused {}", name), fused ? "on" : "off", fused || !has_fused_update(name) ? "" : "on",
             "optimizer_unfused");
    rows.try_with("fused=True", !fused && has_fused_update(name), true);
  }
  if (!facts.word("zero_grad.where").empty()) {
    rows.add("zero_grad(set_to_none)", "off", "on", "zero_grad_not_none");
    rows.try_with("set_to_none=True", true);
  }
  if (const auto workers = facts.figure("loader.workers"); workers && *workers > 0) {
    const bool persistent = facts.figure("loader.persistent").value_or(0) > 0;
    rows.add("persistent_workers", persistent ? "on" : "off", persistent ? "" : "on", "epoch_restart");
    rows.try_with("persistent_workers=True", !persistent, true);  // epochs shuffle by other numbers
  }
  if (const auto pin = facts.figure("loader.pin"); pin && gpu) {
    rows.add("pin_memory", *pin > 0 ? "on" : "off", *pin > 0 ? "" : "on", "serial_h2d");
    rows.try_with("pin_memory=True", *pin == 0);
  }
  if (const auto others = busy_elsewhere(facts), threads = facts.figure("switch.threads");
      others && *others >= kElsewhere && threads.value_or(1) > 1) {
    rows.add("threads of operators, beside other programs", fmt::format("{:.0f}", *threads), "");
    rows.try_with("torch.set_num_threads(1)", true, true);  // several wait for each other whenever one gets no core
  }
  rows.flag("switch.gc", "garbage collection", "on", "gc_churn");
  add_environment(facts, rows);
  return rows.take();
}

// Options of a run that only a measurement can judge.
void add_choices(const Facts& facts, Rows& rows) {
  const std::string_view precision = facts.word("plan.precision"), layout = facts.word("plan.layout");
  if (!precision.empty()) {
    rows.add("precision", std::string(precision), "");
    // From fp16 to bf16 as well; where weights are half, fp32 is no choice.
    const bool whole = precision == "bf16";
    rows.try_with(whole ? "precision=fp32" : "precision=bf16",
                  set_by_hand(facts, "precision") && !(whole && facts.word("plan.half_weights") == "on"), true);
  }
  if (!layout.empty()) {
    const bool last = layout == "channels_last";
    rows.add("layout", std::string(layout), "");
    rows.try_with(last ? "layout=contiguous" : "layout=channels_last", set_by_hand(facts, "layout"), true);
  }
  if (const std::string_view threads = facts.word("plan.intra_op"); !threads.empty()) {
    rows.add("intra_op", std::string(threads), "");
    rows.try_with("intra_op=auto", set_by_hand(facts, "intra_op"), true);
  }
  const std::string_view batch = facts.word("plan.batch"), pass = facts.word("plan.microbatch");
  if (!batch.empty() && !pass.empty() && batch != pass) {
    rows.add("microbatch", std::string(pass), "");
    rows.try_with(fmt::format("microbatch={}", batch), set_by_hand(facts, "microbatch"), true);
  }
}

std::vector<Switch> of_run(const Facts& facts) {
  Rows rows(facts);
  const bool gpu = facts.word("plan.device").starts_with("cuda");
  rows.flag("plan.anomaly", "anomaly", "off", "debug_apis_on");
  rows.flag("plan.deterministic", "deterministic", gpu ? "off" : "");
  if (const std::string_view set = facts.word("plan.recompute"); !set.empty()) {
    rows.add("recompute", std::string(set), "", "recompute_unneeded");
    rows.try_with("recompute=none", set != "none" && set_by_hand(facts, "recompute"));
  }
  add_choices(facts, rows);
  if (gpu) {
    rows.flag("plan.cudnn_benchmark", "cudnn_benchmark", "on");
    rows.try_with("cudnn_benchmark=on",
                  facts.word("plan.cudnn_benchmark") == "off" && set_by_hand(facts, "cudnn_benchmark") &&
                      facts.word("plan.deterministic") != "on",  // which leaves it no choice
                  true);
    rows.flag("plan.tf32", "tf32", "on");
    rows.try_with("tf32=on", facts.word("plan.tf32") == "off" && set_by_hand(facts, "tf32"), true);
    rows.flag("plan.nvtx", "nvtx", "off");
  }
  return rows.take();
}

}  // namespace

bool has_fused_update(std::string_view optimizer) {
  return optimizer == "Adam" || optimizer == "AdamW" || optimizer == "SGD" || optimizer == "Adagrad";
}

std::vector<Switch> inventory(const Facts& facts) {
  return facts.source == Source::kScript ? of_script(facts)
         : facts.source == Source::kRun  ? of_run(facts)
                                         : std::vector<Switch>();
}

}  // namespace stoker::observe::doctor
