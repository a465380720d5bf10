// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/memory_words.h"

#include <cmath>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"

namespace stoker::job {
namespace {

constexpr const char* kGraphRemedy =
    "something keeps tensors with the graph of their step, as `total_loss += loss` does: keep loss.item() or "
    "loss.detach()";

std::string text_of(double bytes) { return bytes_text(std::llround(bytes)); }

std::string rate(const memory::Growth& growth) {
  return fmt::format("grows by {} a step (95 % interval {} to {}; steps {} to {})", text_of(growth.bytes),
                     text_of(growth.low), text_of(growth.high), growth.first, growth.last);
}

// ": linear > addmm made float [64, 256]".
std::string block_text(const memory::HeldBlock& block) {
  return fmt::format("{} made by {} in {}", block.shape.empty() ? bytes_text(block.bytes) : block.shape,
                     block.made_by.empty() ? "code outside operators" : block.made_by, core::phase_name(block.phase));
}

std::string graph_text(const memory::Leftovers& left) {
  return fmt::format("{} of its graph{}", counted(left.graph_nodes, "node"),
                     left.newest_node.empty() ? "" : fmt::format(", the last one of {}", left.newest_node));
}

std::string remedy(const std::optional<memory::LeakOrigin>& origin, const memory::Leftovers& left) {
  if (left.graph_nodes > 0) {
    return kGraphRemedy;
  }
  const core::Phase phase = origin ? origin->phase : core::Phase::kOther;
  if (phase == core::Phase::kInput) {
    return "the source of batches, or a cache of it, keeps what it makes: give it a bound";
  }
  if (phase == core::Phase::kEvaluation) {
    return "an evaluation keeps what it computes: add up sums and counts, or copy predictions to the host";
  }
  return "a list or a cache keeps a tensor of every step: keep its number, or give the list a bound";
}

}  // namespace

std::string tensor_leak(const memory::Growth& growth, const std::optional<memory::LeakOrigin>& origin,
                        const memory::Leftovers& left, std::int64_t step) {
  std::string text = fmt::format("memory held by tensors {}", rate(growth));
  if (origin) {
    text += fmt::format(": what {} allocated stays, the oldest for {}", core::phase_name(origin->phase),
                        counted(origin->oldest, "step"));
  }
  if (left.count > 0) {
    text += fmt::format("; of step {} there remain {} in {}, {}{}", step, bytes_text(left.bytes),
                        counted(left.count, "tensor"), left.count > 1 ? "the largest " : "",
                        block_text(left.blocks.front()));
  }
  if (left.graph_nodes > 0) {
    text += fmt::format("{} {}", left.count > 0 ? ", and" : fmt::format("; of step {} there remain", step),
                        graph_text(left));
  }
  return fmt::format("{}; {}", text, remedy(origin, left));
}

std::string heap_leak(const memory::Growth& growth, const memory::Leftovers& left, std::int64_t step) {
  const std::string text = fmt::format("host memory outside tensors {}", rate(growth));
  return left.graph_nodes > 0
             ? fmt::format("{}: of step {} there remain {}; {}", text, step, graph_text(left), kGraphRemedy)
             : fmt::format("{}: a list or a cache of the program grows (events, texts, std::vector): give it a bound",
                           text);
}

}  // namespace stoker::job
