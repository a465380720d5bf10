// SPDX-License-Identifier: Apache-2.0
// What a recorded step held when: its time line, its peak by category, its largest blocks. Made by StepRecording;
// written, drawn and compared by job. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/phase.h"

namespace stoker::memory {

enum class Category : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,    // moments, master weights, gradient scaler
  kAverages,     // EMA
  kBuffers,      // running statistics, and what a step keeps to restore them
  kInputs,       // the batch, and what threads that load batches made
  kActivations,  // made in forward and alive when it ended
  kTemporaries,  // the rest of what the step made
  kOther,        // made before the step by nobody we know
};
inline constexpr std::size_t kCategories = 9;

// "optimizer state", for reports.
[[nodiscard]] constexpr std::string_view category_name(Category category) {
  constexpr std::array<std::string_view, kCategories> kNames = {"parameters",  "gradients",   "optimizer state",
                                                                "averages",    "buffers",     "inputs",
                                                                "activations", "temporaries", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

// A storage.
struct HeldBlock {
  std::int64_t bytes = 0;
  Category category = Category::kOther;
  core::Phase phase = core::Phase::kOther;  // that it was allocated in
  std::string made_by;                      // operators, outermost first: "linear > addmm"; empty: by none
  std::string shape;                        // "float32 [32, 64]", as the operator returned it; empty: unknown
};

// A phase of the step that begins, or a point that user code named.
struct MemoryMark {
  std::string name;
  std::int64_t allocated = 0;
  std::int64_t peak = 0;  // highest from here to the next mark
  bool named = false;     // by user code
  double at = 0;          // its place on the time line, from 0 to 1
};

// Bytes, as tensors asked for them.
struct StepRecord {
  std::int64_t before = 0, peak = 0, after = 0;
  core::Phase peak_phase = core::Phase::kOther;
  std::string peak_operator;                        // that allocated last before the peak
  std::array<std::int64_t, kCategories> at_peak{};  // sums to `peak`
  std::vector<MemoryMark> marks;
  std::vector<std::int64_t> line;  // highest values over equal numbers of allocations and frees, in order
  std::vector<HeldBlock> blocks;   // the largest ones of the step that the peak held, largest first
  std::int64_t allocations = 0;
};

// What a recorded step left behind although nobody is known to own it.
struct Leftovers {
  std::int64_t bytes = 0;
  std::vector<HeldBlock> blocks;  // largest first, at most ten
  std::int64_t count = 0;         // of blocks
  std::int64_t graph_nodes = 0;   // of autograd
  std::string newest_node;        // the operators that made the last of them
};

}  // namespace stoker::memory
