// SPDX-License-Identifier: Apache-2.0
// The rows of the tips table, one function each. Listed in order by known_tips(); thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/study/tips/tip.h"

namespace stoker::study {

// How a step works: step.cpp.
[[nodiscard]] Tip gradients_to_none();
[[nodiscard]] Tip fused_optimizer();
[[nodiscard]] Tip evaluation_without_gradients();
[[nodiscard]] Tip anomaly_mode_off();
[[nodiscard]] Tip profiler_off();
[[nodiscard]] Tip recompute_all();
[[nodiscard]] Tip chunked_loss();
[[nodiscard]] Tip optimizer_in_backward();
[[nodiscard]] Tip accumulation_16x2();
[[nodiscard]] Tip accumulation_16x1();
[[nodiscard]] Tip larger_batch();

// What the model computes, and in which dtype: arithmetic.cpp.
[[nodiscard]] Tip no_conv_bias();
[[nodiscard]] Tip channels_last();
[[nodiscard]] Tip autocast_bf16();
[[nodiscard]] Tip autocast_fp16();
[[nodiscard]] Tip tf32();
[[nodiscard]] Tip cudnn_benchmark();
[[nodiscard]] Tip fused_attention();

// How data gets to the model: data.cpp.
[[nodiscard]] Tip created_on_device();
[[nodiscard]] Tip loader_threads(int threads);
[[nodiscard]] Tip shuffled_order();
[[nodiscard]] Tip pinned_memory();
[[nodiscard]] Tip async_copies();

// How images are decoded: decoding.cpp.
[[nodiscard]] Tip jpeg_crop();
[[nodiscard]] Tip jpeg_path();

// The models of most rows: all listed ones of bench_models().
[[nodiscard]] std::vector<std::string> listed_models();

}  // namespace stoker::study
