// SPDX-License-Identifier: Apache-2.0
// An evaluation keeps its outputs, so its memory grows with the number of samples.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.2;  // of the memory of the GPU, or of the machine

// Bytes that the program may use; 0: unknown.
double main_memory(const Facts& facts) {
  const double all = facts.figure("machine.memory_bytes").value_or(0);
  return std::min(all, facts.figure("cgroup.memory_limit_bytes").value_or(all));
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto batches = facts.figure("kept_outputs.batches");
  if (!batches) {
    return Healthy{};
  }
  const double gpu = *batches * facts.figure("kept_outputs.gpu_bytes_per_batch").value_or(0);
  const double host = *batches * facts.figure("kept_outputs.host_bytes_per_batch").value_or(0);
  const double of_gpu = facts.figure("memory.total_bytes").value_or(0), of_host = main_memory(facts);
  const bool on_gpu = of_gpu > 0 && gpu > kMost * of_gpu;
  const std::string_view name = facts.word("kept_outputs.name");
  // In main memory it may be what a data set stores: then no variable of the script's functions grows.
  if (!on_gpu && (of_host <= 0 || name.empty() || host < kMost * of_host)) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The evaluation keeps each batch's outputs{}{}: {} of {} at the end of {:.0f} batches",
                              name.empty() ? "" : fmt::format(" in `{}`", name), at_place(facts, "kept_outputs.where"),
                              percent(on_gpu ? gpu / of_gpu : host / of_host),
                              on_gpu ? "the GPU's memory" : "the memory", *batches);
  finding.evidence = {fmt::format("{:.1f} tensors more per batch, {:.2f} MB (script)",
                                  facts.figure("kept_outputs.tensors_per_batch").value_or(0),
                                  1e-6 * (on_gpu ? gpu : host) / *batches)};
  finding.cure = on_gpu ? "add up the metric's sums batch by batch, or keep outputs.cpu(); eval_accumulation_steps in "
                          "transformers' Trainer"
                        : "add up the metric's sums batch by batch";
  finding.danger = "memory grows with the samples of the evaluation";
  return finding;
}

}  // namespace

const Rule kPredictionsKept = {
    .id = "predictions_kept",
    .level = Level::kScript,
    .signal = "tensors that are alive after 10 and after 30 batches of an evaluation; its batches",
    .threshold = "a fifth of the memory of the GPU or of the machine at its end",
    .source = "a choice: the outputs of a small network are no burden",
    .disproof = "the metric needs all outputs at once, and they fit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
