// SPDX-License-Identifier: Apache-2.0
// The allocations and frees of a recorded step in their order, and what follows from them: time line, peak, categories.
// The part of StepRecording that needs no torch running; tested with allocations made up. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stoker/memory/step_record.h"

namespace stoker::memory {

class AllocationLog {
 public:
  // before: bytes held when it begins.
  explicit AllocationLog(std::int64_t before) : before_(before) {}

  struct Maker {
    core::Phase phase = core::Phase::kOther;
    bool of_step = true;  // else: of a thread that does not step
    std::string operators;
  };
  void made(const void* data, std::int64_t bytes, const Maker& maker);
  // counted: the step is still being recorded. Else only what becomes of its blocks is noted.
  void freed(const void* data, std::int64_t bytes, core::Phase phase, bool of_step, bool counted);
  // An operator has returned a tensor whose storage begins at data: its type and shape describe the block.
  void returned(const void* data, const at::Tensor& tensor);
  // The graph of the step has this node.
  void add_node(const std::shared_ptr<torch::autograd::Node>& node, std::string operators);
  void mark(std::string name) { marks_.push_back({std::move(name), events_.size()}); }
  void own(Category category, const void* data, std::int64_t bytes);

  [[nodiscard]] StepRecord record() const;
  [[nodiscard]] Leftovers leftovers() const;

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  struct Block {
    std::int64_t bytes = 0;
    Maker maker;
    std::string shape;
    std::size_t died = kNever;  // the event that freed it
    core::Phase died_in = core::Phase::kOther;
    bool owned = false, alive = true;
    Category owner = Category::kOther;
  };
  struct Event {
    std::int64_t change;
    core::Phase phase;
    bool of_step;
    std::size_t block;  // kNever: it was made before the step
  };
  struct OwnedBefore {  // storages that are older than the step
    Category category;
    std::int64_t bytes;
  };
  struct NamedPoint {
    std::string name;
    std::size_t event;
  };
  struct Node {
    std::weak_ptr<torch::autograd::Node> node;
    std::string operators;
  };
  [[nodiscard]] Category category(const Block& block) const;
  [[nodiscard]] HeldBlock held(const Block& block) const;
  void add_categories(std::size_t peak_event, StepRecord& record) const;
  void add_marks(StepRecord& record) const;
  void add_line(StepRecord& record) const;

  std::int64_t before_;
  std::vector<Block> blocks_;
  std::vector<Event> events_;
  std::unordered_map<const void*, std::size_t> alive_;         // blocks of the step, by address
  std::unordered_map<const void*, std::size_t> freed_before_;  // older blocks, and the event that freed them
  std::unordered_map<const void*, OwnedBefore> owned_before_;
  std::vector<NamedPoint> marks_;
  std::vector<Node> nodes_;
  std::unordered_map<const void*, std::size_t> known_nodes_;
};

}  // namespace stoker::memory
