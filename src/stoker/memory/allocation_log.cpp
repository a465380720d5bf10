// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/allocation_log.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::memory {
namespace {

constexpr std::size_t kLinePoints = 240;
constexpr std::size_t kMostBlocks = 10;
constexpr std::size_t kMostMarks = 64;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return result;
}

template <typename Blocks>
void keep_largest(Blocks& blocks) {
  std::ranges::stable_sort(blocks, [](const HeldBlock& a, const HeldBlock& b) { return a.bytes > b.bytes; });
  blocks.resize(std::min(blocks.size(), kMostBlocks));
}

}  // namespace

void AllocationLog::made(const void* data, std::int64_t bytes, const Maker& maker) {
  events_.push_back({bytes, maker.phase, maker.of_step, blocks_.size()});
  alive_[data] = blocks_.size();
  blocks_.push_back({.bytes = bytes, .maker = maker, .shape = {}});
}

void AllocationLog::freed(const void* data, std::int64_t bytes, core::Phase phase, bool of_step, bool counted) {
  const auto found = alive_.find(data);
  const std::size_t block = found == alive_.end() ? kNever : found->second;
  if (block != kNever) {
    Block& dead = blocks_[block];
    dead.alive = false;
    dead.died = counted ? events_.size() : kNever;
    dead.died_in = phase;
    bytes = dead.bytes;
    alive_.erase(found);
  } else if (counted) {
    freed_before_.try_emplace(data, events_.size());
  }
  if (counted) {
    events_.push_back({-bytes, phase, of_step, block});
  }
}

void AllocationLog::returned(const void* data, const at::Tensor& tensor) {
  const auto found = alive_.find(data);
  if (found != alive_.end() && blocks_[found->second].shape.empty()) {
    blocks_[found->second].shape = fmt::format("{} [{}]", lower(c10::toString(tensor.scalar_type())),
                                               fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
  }
}

void AllocationLog::add_node(const std::shared_ptr<torch::autograd::Node>& node, std::string operators) {
  const auto [known, fresh] = known_nodes_.try_emplace(node.get(), nodes_.size());
  if (!fresh && !nodes_[known->second].node.expired()) {
    return;
  }
  known->second = nodes_.size();  // of an earlier node, its address is used again
  nodes_.push_back({node, std::move(operators)});
}

void AllocationLog::own(Category category, const void* data, std::int64_t bytes) {
  const auto found = alive_.find(data);
  if (found == alive_.end()) {
    owned_before_.try_emplace(data, OwnedBefore{category, bytes});
  } else if (Block& block = blocks_[found->second]; !block.owned) {
    block.owned = true;
    block.owner = category;
  }
}

Category AllocationLog::category(const Block& block) const {
  if (block.owned) {
    return block.owner;
  }
  if (block.maker.phase == core::Phase::kInput) {
    return Category::kInputs;
  }
  if (!block.maker.of_step) {
    return Category::kOther;
  }
  const bool kept = block.died == kNever || block.died_in != core::Phase::kForward;
  return block.maker.phase == core::Phase::kForward && kept ? Category::kActivations : Category::kTemporaries;
}

HeldBlock AllocationLog::held(const Block& block) const {
  return {.bytes = block.bytes,
          .category = category(block),
          .phase = block.maker.phase,
          .made_by = block.maker.operators,
          .shape = block.shape};
}

StepRecord AllocationLog::record() const {
  StepRecord record;
  record.before = record.peak = before_;
  std::int64_t now = before_;
  std::size_t peak_event = 0;  // the number of events up to the peak
  for (std::size_t i = 0; i < events_.size(); ++i) {
    now += events_[i].change;
    record.allocations += events_[i].change > 0 ? 1 : 0;
    if (now > record.peak) {
      record.peak = now;
      peak_event = i + 1;
    }
  }
  record.after = now;
  if (peak_event > 0) {
    const Event& last = events_[peak_event - 1];
    record.peak_phase = last.phase;
    record.peak_operator = last.block == kNever ? "" : blocks_[last.block].maker.operators;
  }
  add_categories(peak_event, record);
  add_marks(record);
  add_line(record);
  return record;
}

// What nobody is known to own is the rest, so that the sum is the peak.
void AllocationLog::add_categories(std::size_t peak_event, StepRecord& record) const {
  std::int64_t rest = record.peak;
  const auto add = [&](Category category, std::int64_t bytes) {
    record.at_peak[static_cast<std::size_t>(category)] += bytes;
    rest -= bytes;
  };
  for (const auto& [data, owned] : owned_before_) {
    const auto freed = freed_before_.find(data);
    if (freed == freed_before_.end() || freed->second >= peak_event) {
      add(owned.category, owned.bytes);
    }
  }
  for (std::size_t i = 0; i < peak_event; ++i) {
    const Event& event = events_[i];
    if (event.change > 0 && blocks_[event.block].died >= peak_event) {
      add(category(blocks_[event.block]), blocks_[event.block].bytes);
      record.blocks.push_back(held(blocks_[event.block]));
    }
  }
  record.at_peak[static_cast<std::size_t>(Category::kOther)] += rest;
  keep_largest(record.blocks);
}

// A mark where the thread that steps enters another phase, and at the points that user code named.
void AllocationLog::add_marks(StepRecord& record) const {
  std::int64_t now = before_;
  core::Phase phase = core::Phase::kOther;
  std::size_t next = 0;
  record.marks.push_back({.name = "start", .allocated = now, .peak = now});
  const auto add = [&](std::string name, bool named, std::size_t event) {
    if (record.marks.size() < kMostMarks) {
      const double all = std::max<double>(1, static_cast<double>(events_.size()));
      record.marks.push_back({.name = std::move(name),
                              .allocated = now,
                              .peak = now,
                              .named = named,
                              .at = static_cast<double>(event) / all});
    }
  };
  for (std::size_t i = 0; i <= events_.size(); ++i) {
    for (; next < marks_.size() && marks_[next].event <= i; ++next) {
      add(marks_[next].name, true, i);
    }
    if (i == events_.size()) {
      break;
    }
    const Event& event = events_[i];
    if (event.of_step && event.phase != phase && event.phase != core::Phase::kOther) {
      phase = event.phase;
      add(std::string(core::phase_name(phase)), false, i);
    }
    now += event.change;
    record.marks.back().peak = std::max(record.marks.back().peak, now);
  }
  add("end", false, events_.size());
}

void AllocationLog::add_line(StepRecord& record) const {
  const std::size_t points = std::min(kLinePoints, events_.size());
  std::int64_t now = before_;
  for (std::size_t point = 0, i = 0; point < points; ++point) {
    std::int64_t highest = 0;
    for (; i < (point + 1) * events_.size() / points; ++i) {
      now += events_[i].change;
      highest = std::max(highest, now);
    }
    record.line.push_back(highest);
  }
}

Leftovers AllocationLog::leftovers() const {
  Leftovers left;
  for (const Block& block : blocks_) {
    if (block.alive && !block.owned && block.maker.of_step) {
      left.bytes += block.bytes;
      ++left.count;
      left.blocks.push_back(held(block));
    }
  }
  keep_largest(left.blocks);
  for (const Node& each : nodes_) {
    if (!each.node.expired()) {
      ++left.graph_nodes;
      left.newest_node = each.operators;
    }
  }
  return left;
}

}  // namespace stoker::memory
