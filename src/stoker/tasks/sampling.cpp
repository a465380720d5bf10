// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/sampling.h"

#include "stoker/base/error.h"
#include "stoker/data/order/weighted_sampler.h"

namespace stoker::tasks {
namespace {

constexpr auto kBehaviour = core::OptionGroup::kBehaviour;
constexpr const char* kBalanced = "balanced";

}  // namespace

std::vector<core::OptionRow<OrderOptions>> order_options() {
  return {
      {&OrderOptions::shuffle,
       {"shuffle", kBehaviour, core::Flag{}, core::always("on", "costs no memory: the order is computed, not stored"),
        "training samples in a new random order each epoch; off: in index order"}}};
}

std::vector<core::OptionRow<SamplingOptions>> sampling_options() {
  std::vector<core::OptionRow<SamplingOptions>> rows;
  core::append_rows(rows, order_options());
  rows.push_back({&SamplingOptions::sampling,
                  {"sampling", kBehaviour, core::Choice{{"uniform", kBalanced}},
                   core::always("uniform", "each sample once per epoch"),
                   "uniform: each sample once per epoch; balanced: each draw takes any class with "
                   "the same probability; samples may repeat"}});
  return rows;
}

void check_sampling(const SamplingOptions& options) {
  if (!options.shuffle && options.sampling == kBalanced) {
    fail<ConfigError>("tasks.sampling",
                      "sampling=balanced draws samples at random, but shuffle=off takes them in order; remove one of "
                      "the two options");
  }
}

std::shared_ptr<const data::BatchOrder> training_order(const SamplingOptions& options, const data::LabelList& labels,
                                                       const BatchRequest& request) {
  if (options.sampling != kBalanced) {
    return nullptr;
  }
  data::WeightedSamplerOptions sampler;
  sampler.weights = data::balanced_weights(labels);
  sampler.batch = request.batch;
  sampler.seed = request.seed;
  sampler.drop_tail = request.drop_tail;
  sampler.rank = request.rank;
  sampler.ranks = request.ranks;
  return std::make_shared<data::WeightedSampler>(sampler);
}

}  // namespace stoker::tasks
