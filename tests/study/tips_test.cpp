// SPDX-License-Identifier: Apache-2.0
// The rows of the tips table: a tip must not change what is computed, so both of its ways, in float64 and with an
// optimizer whose steps are proportional to the gradients, come to the same numbers.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "stoker/study/bench_model.h"
#include "stoker/study/tip.h"

namespace stoker::study {
namespace {

std::map<std::string, at::Tensor> after_two_calls(const Tip& tip, const Setting& setting, bool with) {
  const Way way = tip.make(setting, with);
  for (int call = 0; call < 2; ++call) {
    way.side.call();
    if (way.side.finish) {
      way.side.finish();
    }
  }
  std::map<std::string, at::Tensor> outcome;
  for (const core::NamedTensor& each : way.outcome()) {
    outcome[each.name] = each.tensor.to(at::kDouble).clone();
  }
  return outcome;
}

// The largest difference of what both ways have, in units of the tensor's largest value.
double difference(const Tip& tip, const Setting& setting) {
  const auto without = after_two_calls(tip, setting, false), with = after_two_calls(tip, setting, true);
  double worst = 0;
  std::size_t shared = 0;
  for (const auto& [name, tensor] : with) {
    const auto found = without.find(name);
    if (found == without.end()) {
      ADD_FAILURE() << name << " is there with the tip alone";
      continue;
    }
    ++shared;
    const double largest = std::max(1e-3, found->second.abs().max().item<double>());
    worst = std::max(worst, (found->second - tensor).abs().max().item<double>() / largest);
  }
  EXPECT_GT(shared, 0U);
  return worst;
}

const Tip& tip_called(const std::string& id) {
  for (const Tip& tip : known_tips()) {
    if (tip.id == id) {
      return tip;
    }
  }
  throw std::out_of_range(id);
}

class SameWork : public testing::TestWithParam<std::string> {};

TEST_P(SameWork, OnEveryModel) {
  const Tip& tip = tip_called(GetParam());
  ASSERT_FALSE(tip.models.empty());
  for (const std::string& model : tip.models) {
    const Setting setting{.model = model, .cores = 1, .dtype = at::kDouble, .batch = 4, .plain_sgd = true};
    EXPECT_LT(difference(tip, setting), 1e-8) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Tips, SameWork,
                         testing::Values("grads-to-none", "no-conv-bias", "channels-last", "fused-optimizer",
                                         "fused-attention", "no-grad-evaluation", "anomaly-mode-off", "profiler-off"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Tips, AdamwByParameterIsThatOfTheFusedKernel) {
  for (const char* model : {"unet", "gpt"}) {  // their own optimizer, at rates that rounding cannot reach
    const Setting setting{.model = model, .dtype = at::kDouble, .batch = 2};
    EXPECT_LT(difference(tip_called("fused-optimizer"), setting), 1e-6) << model;
  }
}

TEST(Tips, AccumulationIsExactWithoutBatchNormAndIsNotWithIt) {
  Setting setting{.model = "resnet34-slim-no-norm", .dtype = at::kDouble, .batch = 20, .plain_sgd = true};
  EXPECT_LT(difference(tip_called("accumulation-16x2"), setting), 1e-8);
  setting.model = "resnet34-slim";
  EXPECT_GT(difference(tip_called("accumulation-16x2"), setting), 1e-6);
}

TEST(Tips, WhatTheLoaderBringsDoesNotDependOnItsThreads) {
  for (const char* id : {"loader-1-thread", "loader-2-threads"}) {
    const Tip& tip = tip_called(id);
    EXPECT_LT(difference(tip, {.model = "cnn", .cores = 1, .dtype = at::kDouble, .batch = 4, .plain_sgd = true}), 1e-8)
        << id;
  }
}

TEST(Tips, AutocastComesCloseAndIsNotTheSame) {
  const Tip& tip = tip_called("autocast-bf16");
  for (const std::string& model : tip.models) {
    const Setting setting{.model = model, .batch = 4, .plain_sgd = true};
    const auto without = after_two_calls(tip, setting, false), with = after_two_calls(tip, setting, true);
    double apart = 0, all = 0;
    for (const auto& [name, tensor] : with) {
      apart += (without.at(name) - tensor).square().sum().item<double>();
      all += tensor.square().sum().item<double>();
    }
    // Here the last norms of ResNet-50 see 16 values a channel, which magnifies rounding.
    EXPECT_LT(std::sqrt(apart / all), model == "resnet50" ? 0.5 : 0.02) << model;
    EXPECT_GT(apart, 0) << model;
  }
}

TEST(Tips, IdsAreOnesOwnAndModelsAreKnown) {
  std::set<std::string> ids, models;
  for (const BenchModelInfo& info : bench_models()) {
    EXPECT_TRUE(models.insert(info.name).second) << info.name;
  }
  EXPECT_EQ(bench_models().size(), 9U);
  for (const Tip& tip : known_tips()) {
    EXPECT_TRUE(ids.insert(tip.id).second) << tip.id;
    EXPECT_EQ(tip.make == nullptr, tip.need == Need::kLoader) << tip.id;
    for (const std::string& model : tip.models) {
      EXPECT_TRUE(models.contains(model)) << tip.id << " " << model;
    }
  }
}

}  // namespace
}  // namespace stoker::study
