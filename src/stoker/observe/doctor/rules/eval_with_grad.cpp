// SPDX-License-Identifier: Apache-2.0
// Evaluations record graphs that nobody uses.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Of an evaluation: what recording a graph costs, without the memory that it takes. bench/results/tips.txt
// (no-grad-evaluation): 1.03 to 1.11 times as fast without, 1.24 for the smallest network.
constexpr double kRecording = 0.06;
// The graph's memory comes back page by page, unless it is kept: then three networks gained nothing that shows
// (bench/results/doctor-scripts.txt).
constexpr Reach kKept = {.low = 0, .high = 1}, kReach = {.low = 0, .high = 3};

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const std::string_view gradients = facts.word("evaluation.gradients");
  if (gradients.empty()) {
    return Abstained{"an evaluation"};
  }
  const double share = facts.share("evaluation").value_or(0);
  if (gradients != "true" || share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Evaluation records graphs{}, and takes {} of the time",
                              at_place(facts, "evaluation.where"), percent(share));
  finding.evidence = {part_words(facts, "evaluation"), "gradients are on in evaluation (script)"};
  finding.cure = "with torch.inference_mode(): around the evaluation; it needs far less memory, too";
  finding.option = "torch.inference_mode()";
  finding.gain = predict(
      facts.periods, [](const Period& each) { return kRecording * each.part("evaluation"); },
      !on_gpu(facts) && keeps_freed_memory(facts) ? kKept : kReach);
  return finding;
}

}  // namespace

const Rule kEvalWithGrad = {
    .id = "eval_with_grad",
    .level = Level::kScript,
    .signal = "whether gradients are on while a model in eval() is called; time in evaluations",
    .threshold = "2 % of the time in evaluations",
    .source = "facebookresearch/fairchem#199: 6 to 8 GB with the graph, 1 to 2.3 GB without",
    .disproof = "the evaluation takes gradients on purpose",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
