// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/pipeline_plan.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/core/trainable.h"
#include "stoker/train/resolve.h"

namespace stoker::train {
namespace {

using core::Origin;
constexpr std::string_view kWhere = "train.pipeline";

// What a pipeline cannot work with, and the remedy; empty: nothing.
std::string excluded_in_pipeline(const Plan& plan, const Options& options) {
  for (const char* key : {"batch", "microbatch", "recompute"}) {
    if (options.is_auto(key)) {
      return fmt::format("{0}=auto, whose search computes the whole model; set {0} to a value", key);
    }
  }
  if (plan.shard != "none") {
    return fmt::format("shard={}: a stage holds only its own state already; remove it", plan.shard);
  }
  return plan.device == "cpu"
             ? ""
             : fmt::format("device={}: stages compute on CPUs only so far; set device=cpu", plan.device);
}

int segment_named(const core::Trainable& model, const std::string& name) {
  std::vector<std::string> names;
  for (int segment = 0; segment < model.segments(); ++segment) {
    names.push_back(model.segment_name(segment));
    if (names.back() == name) {
      return segment;
    }
  }
  fail<ConfigError>(kWhere, "pipeline_cut names \"{}\", but the segments are {}", printable(name),
                    fmt::join(names, ", "));
}

}  // namespace

void check_stages(std::int64_t stages, std::int64_t ranks) {
  if (ranks % stages != 0) {
    fail<ConfigError>(kWhere,
                      "pipeline={} needs a rank for each stage, or a multiple of them, but there are {}; set "
                      "ranks={}, or pipeline=1",
                      stages, ranks, std::max<std::int64_t>(1, ranks / stages) * stages);
  }
}

void check_pipeline(const Plan& plan, const Options& options) {
  if (plan.pipeline == 1) {
    if (!plan.pipeline_cut.empty()) {
      fail<ConfigError>(kWhere, "pipeline_cut={} needs a pipeline; set pipeline= to the number of stages",
                        plan.pipeline_cut);
    }
    return;
  }
  check_stages(plan.pipeline, plan.ranks);
  if (const std::string other = excluded_in_pipeline(plan, options); !other.empty()) {
    fail<ConfigError>(kWhere, "pipeline={} does not work with {}", plan.pipeline, other);
  }
}

// Four passes for each stage: with fewer, stages wait for more than a fifth of a step (GPipe, arXiv:1811.06965). Batch
// norm learns less from passes of fewer than 8 samples (docs/memory.md).
void put_microbatch(Plan& plan, const Facts& facts) {
  constexpr std::int64_t kPasses = 4, kCoupled = 8;
  if (plan.pipeline == 1) {
    decide(plan, "microbatch", std::to_string(plan.batch), Origin::kDefault, "the whole batch");
    return;
  }
  const std::int64_t part = std::max<std::int64_t>(1, plan.batch / replicas(plan));
  const std::int64_t pass = part / (kPasses * plan.pipeline);
  const std::int64_t least = std::min(part, couples_samples(plan, facts) ? kCoupled : 1);
  decide(plan, "microbatch", std::to_string(std::max(least, pass)), Origin::kDefault,
         pass >= least ? fmt::format("{} passes keep {} stages busy", kPasses * plan.pipeline, plan.pipeline)
                       : fmt::format("a pipeline wants {} passes, but smaller ones cost accuracy with batch norm",
                                     kPasses * plan.pipeline));
}

bool is_pipeline_cut(std::string_view text) {
  return !text.starts_with(',') && !text.ends_with(',') && text.find(",,") == std::string_view::npos;
}

std::vector<int> first_segments(const Plan& plan, const core::Trainable& model) {
  std::vector<int> firsts;
  std::istringstream names(plan.pipeline_cut);
  for (std::string name; std::getline(names, name, ',');) {
    firsts.push_back(segment_named(model, name));
  }
  if (std::ssize(firsts) + 1 != plan.pipeline) {
    fail<ConfigError>(kWhere,
                      "pipeline_cut={} makes {} stages, but pipeline={}; name a segment for each stage but the "
                      "first",
                      printable(plan.pipeline_cut), firsts.size() + 1, plan.pipeline);
  }
  if (!firsts.empty() &&
      (firsts.front() == 0 || std::ranges::adjacent_find(firsts, std::greater_equal()) != firsts.end())) {
    fail<ConfigError>(kWhere, "pipeline_cut={}: stages begin at different segments after the first one, in their order",
                      printable(plan.pipeline_cut));
  }
  return firsts;
}

}  // namespace stoker::train
