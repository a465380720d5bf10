// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/sampling.h"

#include "stoker/base/error.h"
#include "stoker/data/order/weighted_sampler.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

constexpr const char* kShuffle = "shuffle";
constexpr const char* kSampling = "sampling";
constexpr const char* kUniform = "uniform";
constexpr const char* kBalanced = "balanced";

}  // namespace

core::TaskSetting shuffle_setting() {
  return flag_setting(kShuffle, "on",
                      "training samples in another order each epoch; off: in the order of their indices, every epoch");
}

void add_shuffle_row(RecipeRows& rows) { rows.add(kShuffle, "on", "it costs nothing: no order is stored or read"); }

bool shuffles(const core::TaskValues& own) {
  if (!own.contains(kShuffle) || flag_value(own, kShuffle)) {
    return true;
  }
  if (text_or(own, kSampling, kUniform) == kBalanced) {
    fail<ConfigError>("tasks.sampling",
                      "sampling=balanced draws samples at random, shuffle=off takes them in order; "
                      "leave one of them out");
  }
  return false;
}

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
