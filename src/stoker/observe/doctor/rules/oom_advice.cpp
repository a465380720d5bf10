// SPDX-License-Identifier: Apache-2.0
// Memory ran out and ended the script: what was in it, and what to change first.
#include <array>

#include "stoker/base/bytes_text.h"
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kOthers = 0.1;    // of the GPU's memory, in other programs' hands
constexpr double kContext = 1e9;   // bytes that CUDA's context and its libraries take at most
constexpr double kMuchKept = 0.1;  // of the GPU's memory, in outputs of an evaluation

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kPhases = {
    {{"fetch", " in the data set"},
     {"forward", " in forward"},
     {"backward", " in backward"},
     {"optimizer", " in the optimizer"},
     {"evaluation", " in the evaluation"}}};

std::string amount(double bytes) { return bytes_text(static_cast<std::int64_t>(std::clamp(bytes, 0.0, 1e18))); }

struct Advice {
  std::string cure, option;
};

// fitting: rows that would fit; 0: unknown.
Advice smaller_batch(const Facts& facts, std::string_view phase, double fitting) {
  if (phase == "evaluation") {
    return {"a smaller batch in the evaluation", ""};
  }
  if (phase.empty()) {
    return {"load and make less at a time; the line tells what", ""};
  }
  const double rows = facts.figure("loader.batch").value_or(0);
  if (rows <= 1) {
    return {"checkpoint the activations (torch.utils.checkpoint), compute in bfloat16, or take a smaller model", ""};
  }
  const double fewer = fitting >= 1 && fitting < rows ? fitting : std::max(std::floor(rows / 2), 1.0);
  return {fmt::format("a batch of {:.0f} rows instead of {:.0f}, and a step of the optimizer after {:.0f} of them",
                      fewer, rows, std::ceil(rows / fewer)),
          fmt::format("batch_size={:.0f}", fewer)};
}

Advice advice_for_gpu(const Facts& facts, std::string_view phase) {
  const auto bytes = [&](const char* name) { return facts.figure(fmt::format("out_of_memory.{}", name)).value_or(0); };
  const double total = bytes("total"), unused = bytes("reserved") - bytes("allocated");
  const double others = total - bytes("free") - bytes("reserved") - kContext;
  if (phase == "evaluation" && facts.word("evaluation.gradients") == "true") {
    return {fmt::format("with torch.inference_mode(): around the evaluation{}: it records graphs that nobody uses",
                        at_place(facts, "evaluation.where")),
            "torch.inference_mode()"};
  }
  const double kept =
      facts.figure("kept_outputs.batches").value_or(0) * facts.figure("kept_outputs.gpu_bytes_per_batch").value_or(0);
  if (phase == "evaluation" && kept > kMuchKept * total) {
    return {fmt::format("outputs.cpu(), or sums batch by batch: the evaluation keeps {} of outputs on the GPU{}",
                        amount(kept), at_place(facts, "kept_outputs.where")),
            ""};
  }
  if (total > 0 && others > kOthers * total) {
    return {fmt::format("end the other programs that hold {} of this GPU: `stoker ps` names them", amount(others)), ""};
  }
  if (bytes("requested") > 0 && unused >= bytes("requested")) {
    return {fmt::format("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: {} are reserved and unused, in pieces that "
                        "are too small",
                        amount(unused)),
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"};
  }
  if (phase == "optimizer") {
    return {"an optimizer without temporary copies of all weights (fused=True, or foreach=False), or a smaller model",
            "fused=True"};
  }
  return smaller_batch(facts, phase, fitting_rows(facts));
}

Advice advice_for(const Facts& facts, std::string_view what, std::string_view phase) {
  if (what == "gpu") {
    return advice_for_gpu(facts, phase);
  }
  if (what == "shared") {
    return {"a larger /dev/shm (docker run --shm-size=8g, or --ipc=host), or fewer workers", ""};
  }
  if (what == "worker") {
    return {
        "fewer workers or a smaller prefetch_factor, and no large Python lists in the data set: each worker copies "
        "their pages",
        ""};
  }
  if (phase == "fetch") {
    return {"a data set that reads each sample when it is asked for, instead of all at once", ""};
  }
  return smaller_batch(facts, phase, 0);
}

std::string claim_for(const Facts& facts, std::string_view what, std::string_view phase) {
  if (what == "worker") {
    return "The system killed a worker of the loader, mostly since main memory ran out";
  }
  if (what == "shared") {
    return "Shared memory (/dev/shm) ran out in a worker of the loader";
  }
  const auto known = std::ranges::find(kPhases, phase, [](const auto& each) { return each.first; });
  return fmt::format("{} ran out{}{}", what == "gpu" ? "The GPU's memory" : "Main memory",
                     at_place(facts, "out_of_memory.where"), known == kPhases.end() ? "" : known->second);
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const std::string_view what = facts.word("out_of_memory.what"), phase = facts.word("out_of_memory.phase");
  if (what.empty()) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = claim_for(facts, what, phase);
  if (const std::string_view text = facts.word("out_of_memory.text"); !text.empty() && what != "worker") {
    finding.evidence.push_back(fmt::format("{}: {} (script)", facts.word("out_of_memory.where"), text));
  }
  if (const auto asked = facts.figure("out_of_memory.requested")) {
    finding.evidence.push_back(fmt::format("asked for: {} (script)", amount(*asked)));
  }
  if (const auto total = facts.figure("out_of_memory.total")) {
    finding.evidence.push_back(fmt::format("GPU: {} free of {}, {} in tensors of this process (script)",
                                           amount(facts.figure("out_of_memory.free").value_or(0)), amount(*total),
                                           amount(facts.figure("out_of_memory.allocated").value_or(0))));
  }
  Advice advice = advice_for(facts, what, phase);
  finding.cure = std::move(advice.cure);
  finding.option = std::move(advice.option);
  finding.danger = "the training ended";
  return finding;
}

}  // namespace

const Rule kOomAdvice = {
    .id = "oom_advice",
    .level = Level::kScript,
    .signal = "the error that ended the script; the GPU's memory at that moment and after steps",
    .threshold = "an error of an allocator, or a worker that the system killed",
    .source = "facebookresearch/fairchem#775, pytorch/pytorch#97712, #35901: out of memory with memory to spare",
    .disproof = "the cure asks for as much: then something else grew (stoker memory, torch.cuda.memory_summary())",
    .judge = judge,
    .needs_steps = false,
};

}  // namespace stoker::observe::doctor
