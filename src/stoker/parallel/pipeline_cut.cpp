// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/pipeline_cut.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "stoker/base/bytes_text.h"
#include "stoker/base/error.h"
#include "stoker/parallel/pipeline_schedule.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.pipeline";

// A range of segments that stays together.
using Block = std::pair<int, int>;

std::vector<Block> blocks_of(std::size_t segments, const std::vector<SharedParameter>& shared) {
  std::vector<bool> cut(segments + 1, true);  // whether a stage may begin at a segment
  for (const SharedParameter& each : shared) {
    if (each.segments.empty()) {
      continue;
    }
    const auto [first, last] = std::minmax_element(each.segments.begin(), each.segments.end());
    for (int segment = *first + 1; segment <= *last; ++segment) {
      cut[static_cast<std::size_t>(segment)] = false;
    }
  }
  std::vector<Block> blocks;
  int first = 0;
  for (int segment = 1; segment <= static_cast<int>(segments); ++segment) {
    if (cut[static_cast<std::size_t>(segment)]) {
      blocks.emplace_back(std::exchange(first, segment), segment);
    }
  }
  return blocks;
}

// "segment layer3", "segments stem to layer3".
std::string words(const std::vector<SegmentLoad>& segments, int first, int last) {
  const std::string& begin = segments[static_cast<std::size_t>(first)].name;
  return last == first + 1 ? "segment " + begin
                           : fmt::format("segments {} to {}", begin, segments[static_cast<std::size_t>(last) - 1].name);
}

// A dynamic program: the cut whose largest score of a stage is least. score(stage, first, last): empty if it must not
// be. Empty: there is no such cut.
template <typename Score>
std::optional<std::vector<Block>> least_largest(
    const std::vector<Block>& blocks, int stages,
    const std::function<std::optional<Score>(int stage, int first, int last)>& score) {
  const std::size_t count = blocks.size();
  struct Best {
    std::optional<Score> largest;
    std::size_t begin = 0;  // block where the last stage begins
  };
  // best[s][b]: of the first b blocks in s stages.
  std::vector<std::vector<Best>> best(static_cast<std::size_t>(stages) + 1, std::vector<Best>(count + 1));
  best[0][0].largest = std::numeric_limits<Score>::lowest();
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(stages); ++stage) {
    for (std::size_t end = stage + 1; end <= count; ++end) {
      Best& here = best[stage + 1][end];
      for (std::size_t begin = stage; begin < end; ++begin) {
        const Best& before = best[stage][begin];
        if (!before.largest || (here.largest && *before.largest >= *here.largest)) {
          continue;
        }
        const auto own = score(static_cast<int>(stage), blocks[begin].first, blocks[end - 1].second);
        if (own && (!here.largest || std::max(*own, *before.largest) < *here.largest)) {
          here = {std::max(*own, *before.largest), begin};
        }
      }
    }
  }
  if (!best.back()[count].largest) {
    return std::nullopt;
  }
  std::vector<Block> cut(static_cast<std::size_t>(stages));
  for (std::size_t stage = cut.size(), end = count; stage > 0; --stage) {
    const std::size_t begin = best[stage][end].begin;
    cut[stage - 1] = {blocks[begin].first, blocks[end - 1].second};
    end = begin;
  }
  return cut;
}

void check_count(const std::vector<SegmentLoad>& segments, const std::vector<SharedParameter>& shared,
                 const std::vector<Block>& blocks, int stages) {
  if (stages < 1) {
    fail<ConfigError>(kWhere, "a pipeline has at least one stage, got {}; set pipeline=N", stages);
  }
  if (stages <= std::ssize(blocks)) {
    return;
  }
  if (stages > std::ssize(segments)) {
    fail<ConfigError>(kWhere,
                      "the model is a chain of {} segments, so it cannot be cut into {} stages; set pipeline={}",
                      segments.size(), stages, segments.size());
  }
  std::vector<std::string> names;
  for (const SharedParameter& each : shared) {
    if (each.segments.size() > 1) {
      names.push_back(each.name);
    }
  }
  fail<ConfigError>(kWhere,
                    "segments that share a parameter stay in one stage ({}), so the model can be cut into {} stages at "
                    "most, not {}; set pipeline={}, or use a model without tied parameters",
                    fmt::join(names, ", "), blocks.size(), stages, blocks.size());
}

[[noreturn]] void explain_no_fit(const std::vector<SegmentLoad>& segments, const std::vector<Block>& blocks,
                                 const PipelineLimits& limits) {
  for (const Block& block : blocks) {  // alone in the last stage, which holds one microbatch
    const std::int64_t bytes = stage_of(segments, limits, limits.stages - 1, block.first, block.second).bytes;
    if (bytes > limits.bytes) {
      fail<ConfigError>(kWhere,
                        "{} {} {} for parameters, their optimizer state and one microbatch, which is {} more than the "
                        "{} of a stage; use smaller microbatches, or recompute=all",
                        words(segments, block.first, block.second),
                        block.second == block.first + 1 ? "needs" : "stay together and need", bytes_text(bytes),
                        bytes_text(bytes - limits.bytes), bytes_text(limits.bytes));
    }
  }
  const auto least = least_largest<std::int64_t>(blocks, limits.stages, [&](int stage, int first, int last) {
    return std::optional(stage_of(segments, limits, stage, first, last).bytes);
  });
  PipelineStage largest;
  int at = 0;
  for (int stage = 0; stage < limits.stages; ++stage) {
    const Block& block = (*least)[static_cast<std::size_t>(stage)];
    const PipelineStage own = stage_of(segments, limits, stage, block.first, block.second);
    if (own.bytes > largest.bytes) {
      largest = own;
      at = stage;
    }
  }
  fail<ConfigError>(kWhere,
                    "no cut into {} stages fits {} each: the best one needs {} in stage {} ({}, {} microbatches at a "
                    "time); use more stages, smaller microbatches, or recompute=all",
                    limits.stages, bytes_text(limits.bytes), bytes_text(largest.bytes), at + 1,
                    words(segments, largest.first, largest.last),
                    most_in_flight(at, limits.stages, limits.microbatches));
}

}  // namespace

PipelineStage stage_of(const std::vector<SegmentLoad>& segments, const PipelineLimits& limits, int stage, int first,
                       int last) {
  PipelineStage found{.first = first, .last = last};
  std::int64_t kept = first > 0 ? segments[static_cast<std::size_t>(first) - 1].output_bytes : 0;
  for (int segment = first; segment < last; ++segment) {
    const SegmentLoad& load = segments[static_cast<std::size_t>(segment)];
    found.seconds += load.seconds;
    found.bytes += load.state_bytes;
    kept += load.kept_bytes;
  }
  if (last > 0 && last < std::ssize(segments)) {  // what was sent stays until its gradient comes
    kept += segments[static_cast<std::size_t>(last) - 1].output_bytes;
  }
  found.bytes += most_in_flight(stage, limits.stages, limits.microbatches) * kept;
  for (const int border : {first, last}) {
    if (border > 0 && border < std::ssize(segments)) {
      const SegmentLoad& before = segments[static_cast<std::size_t>(border) - 1];
      const auto bytes = static_cast<double>(before.output_bytes + before.gradient_bytes);
      found.seconds += 2 * limits.latency + (limits.bytes_per_second > 0 ? bytes / limits.bytes_per_second : 0);
    }
  }
  return found;
}

std::vector<PipelineStage> cut_pipeline(const std::vector<SegmentLoad>& segments,
                                        const std::vector<SharedParameter>& shared, const PipelineLimits& limits) {
  const std::vector<Block> blocks = blocks_of(segments.size(), shared);
  check_count(segments, shared, blocks, limits.stages);
  const auto cut = least_largest<double>(blocks, limits.stages, [&](int stage, int first, int last) {
    const PipelineStage own = stage_of(segments, limits, stage, first, last);
    return limits.bytes > 0 && own.bytes > limits.bytes ? std::nullopt : std::optional(own.seconds);
  });
  if (!cut) {
    explain_no_fit(segments, blocks, limits);
  }
  std::vector<PipelineStage> stages;
  for (const Block& block : *cut) {
    stages.push_back(stage_of(segments, limits, static_cast<int>(stages.size()), block.first, block.second));
  }
  return stages;
}

}  // namespace stoker::parallel
