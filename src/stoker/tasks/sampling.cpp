// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/sampling.h"

#include "stoker/data/weighted_sampler.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

constexpr const char* kSampling = "sampling";
constexpr const char* kUniform = "uniform";
constexpr const char* kBalanced = "balanced";

}  // namespace

core::TaskSetting sampling_setting() {
  return choice_setting(kSampling, {kUniform, kBalanced}, kUniform,
                        "every training sample once an epoch, or as many draws, each class as often as any other");
}

void add_sampling_row(RecipeRows& rows) { rows.add(kSampling, kUniform, "every sample once an epoch"); }

std::shared_ptr<const data::BatchOrder> training_order(const core::TaskValues& own, const data::LabelList& labels,
                                                       const BatchRequest& request) {
  if (text_or(own, kSampling, kUniform) != kBalanced) {
    return nullptr;
  }
  data::WeightedSamplerOptions options;
  options.weights = data::balanced_weights(labels);
  options.batch = request.batch;
  options.seed = request.seed;
  options.drop_tail = request.drop_tail;
  return std::make_shared<data::WeightedSampler>(options);
}

}  // namespace stoker::tasks
