// SPDX-License-Identifier: Apache-2.0
// The host waits while it copies from memory that the device cannot read by itself.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
constexpr double kAlike = 2;    // times as large: another tensor than those of the loader's batches
// On an H200 pinned batches saved 2.1 and 3.2 times what the copies took, since the loader's memory is mapped only
// once; masks made on the GPU 2.8 times what their line took (bench/results/doctor-gpu.txt).
constexpr Reach kReach = {.low = 1, .high = 4};

// Whether the longest of the copies are a batch of the loader, by the size of a tensor. Without a loader they are taken
// for that.
bool are_batches(const Facts& facts) {
  const auto longest = std::ranges::find_if(
      facts.waits, [](const WaitingCall& call) { return call.kind.starts_with("to_gpu pageable"); });
  const double tensors = facts.figure("loader.tensors_per_batch").value_or(0);
  const double bytes = facts.figure("loader.bytes_per_batch").value_or(0);
  if (longest == facts.waits.end() || longest->times <= 0 || tensors <= 0 || bytes <= 0) {
    return true;
  }
  const double copied = longest->bytes / longest->times;
  return copied <= kAlike * bytes && copied * kAlike >= bytes / tensors;
}

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kTrace) {
    return Abstained{"a recorded trace"};
  }
  if (!facts.figure("step.seconds") || !facts.figure("waits.steps")) {
    return Abstained{"the lines of a script that copy to its GPU (stoker doctor -- python ...)"};
  }
  const WaitingCalls copies = waiting_calls(facts, {"to_gpu pageable"});
  if (copies.share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The host copies from pageable memory to the GPU {} of the time", percent(copies.share));
  finding.evidence = copies.lines;
  if (!are_batches(facts)) {
    finding.cure = "make these tensors on the GPU (device=...), once, or keep them as buffers of the model";
  } else if (facts.figure("loader.pin").value_or(0) > 0) {
    finding.cure = "pinned tensors: what the loader pinned was copied or changed before .to(device)";
  } else {
    finding.cure = "DataLoader(..., pin_memory=True), and .to(device, non_blocking=True)";
    finding.option = "pin_memory=True";
  }
  const double most = std::max(0.0, 1 - facts.share("compute").value_or(0));
  finding.gain = predict(
      facts.periods, [&](const Period& each) { return std::min(copies.share, most / kReach.high) * each.seconds; },
      kReach);
  return finding;
}

}  // namespace

const Rule kPageableH2d = {
    .id = "pageable_h2d",
    .level = Level::kTrace,
    .signal = "the script's calls of .to() and .cuda() that copy from pageable memory, and how long they take",
    .threshold = "2 % of the time",
    .source = "an H200: 12 GB/s from pageable memory, 55 GB/s from pinned memory beside the computation",
    .disproof = "pinned memory leaves the time as it is: then the GPU was the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
