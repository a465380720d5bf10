// SPDX-License-Identifier: Apache-2.0
// Where a chain of segments is cut into the stages of a pipeline: so that the slowest stage takes the least time, and
// each one fits its memory. Knows no model: it is told what each segment costs. Without torch; no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::parallel {

// What one segment costs a stage, with one microbatch.
struct SegmentLoad {
  std::string name;                 // "layer3", for errors
  double seconds = 0;               // of its forward and its backward pass
  std::int64_t state_bytes = 0;     // of parameters, gradients and the optimizer's moments
  std::int64_t kept_bytes = 0;      // that backward needs, and its outputs
  std::int64_t output_bytes = 0;    // that the next segment gets
  std::int64_t gradient_bytes = 0;  // of the gradients that come back for its outputs
  bool operator==(const SegmentLoad&) const = default;
};

// A parameter that several segments use. It has one gradient, so they stay in one stage.
struct SharedParameter {
  std::string name;
  std::vector<int> segments;  // ascending
};

struct PipelineLimits {
  int stages = 1;
  int microbatches = 1;         // of a step; a stage holds few of them at a time
  std::int64_t bytes = 0;       // of a stage; 0: no limit
  double bytes_per_second = 0;  // between two stages; 0: moving takes no time
  double latency = 0;           // seconds of a message
};

struct PipelineStage {
  int first = 0, last = 0;  // segments first ... last - 1
  double seconds = 0;       // of a microbatch: forward, backward, and moving what enters and leaves
  std::int64_t bytes = 0;
  bool operator==(const PipelineStage&) const = default;
};

// Time and bytes of one stage.
[[nodiscard]] PipelineStage stage_of(const std::vector<SegmentLoad>& segments, const PipelineLimits& limits, int stage,
                                     int first, int last);

// The stages in order; of equally slow cuts, one with early cuts. ConfigError if there are more stages than parts that
// can be cut off, or if no cut fits: with the segment that is too large and by how much, or the limit that would do.
[[nodiscard]] std::vector<PipelineStage> cut_pipeline(const std::vector<SegmentLoad>& segments,
                                                      const std::vector<SharedParameter>& shared,
                                                      const PipelineLimits& limits);

}  // namespace stoker::parallel
