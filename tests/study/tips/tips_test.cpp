// SPDX-License-Identifier: Apache-2.0
// The rows of the tips table. A tip that only changes how something is computed must not change the result: both of its
// ways give the same numbers, in float64 and with an optimizer whose steps are proportional to the gradients. All ways
// use the same samples, and leave nothing switched on.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "stoker/study/tips/bench_model.h"
#include "stoker/study/tips/tip.h"

namespace stoker::study {
namespace {

std::map<std::string, at::Tensor> after_two_calls(const Tip& tip, const TipCase& tip_case, bool with) {
  const Way way = tip.make(tip_case, with);
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

// The largest difference between the outcomes of both ways, relative to the tensor's largest value.
double difference(const Tip& tip, const TipCase& tip_case) {
  const auto without = after_two_calls(tip, tip_case, false), with = after_two_calls(tip, tip_case, true);
  double worst = 0;
  std::size_t shared = 0;
  for (const auto& [name, tensor] : with) {
    const auto found = without.find(name);
    if (found == without.end()) {
      ADD_FAILURE() << name << " exists only with the tip";
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

// Both ways of these tips give the same numbers.
const std::vector<std::string> kSameWork{
    "grads-to-none",         "no-conv-bias",     "channels-last", "fused-optimizer", "fused-attention",
    "no-grad-evaluation",    "anomaly-mode-off", "profiler-off",  "recompute-all",   "chunked-loss",
    "optimizer-in-backward", "jpeg-crop",        "jpeg-path"};
// The other tips, and why they are not in the list above.
const std::map<std::string, std::string> kOtherWork{
    {"autocast-bf16", "rounds differently on purpose: AutocastComesCloseAndIsNotTheSame"},
    {"autocast-fp16", "the same; tests/golden compares its numbers with PyTorch's"},
    {"tf32", "rounds differently on purpose, and only on a GPU"},
    {"cudnn-benchmark", "needs a GPU"},
    {"created-on-device", "needs a GPU"},
    {"accumulation-16x2", "exact only without batch norm: AccumulationIsExactWithoutBatchNormAndIsNotWithIt"},
    {"accumulation-16x1", "takes two steps instead of one: BothWaysTakeTheSameSamples"},
    {"larger-batch", "takes one step instead of four: BothWaysTakeTheSameSamples"},
    {"loader-1-thread", "uses other images: WhatTheLoaderBringsDoesNotDependOnItsThreads"},
    {"loader-2-threads", "the same"},
    {"pinned-memory", "takes twelve steps per call, so only small models are compared: CopiesChangeNothing"},
    {"async-copies", "the same"},
    {"shuffled-order", "takes the same samples in another order: TheOrderIsAllThatShufflingChanges"}};

class SameWork : public testing::TestWithParam<std::string> {};

TEST_P(SameWork, OnEveryModel) {
  const Tip& tip = tip_called(GetParam());
  ASSERT_FALSE(tip.models.empty());
  for (const std::string& model : tip.models) {
    const TipCase tip_case{.model = model, .cores = 1, .dtype = at::kDouble, .batch = 4, .plain_sgd = true};
    EXPECT_LT(difference(tip, tip_case), 1e-8) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Tips, SameWork, testing::ValuesIn(kSameWork), [](const auto& each) {
  std::string name = each.param;
  std::erase(name, '-');
  return name;
});

TEST(Tips, EachIsHeldToTheSameWorkOrSaysWhyNot) {
  std::set<std::string> held(kSameWork.begin(), kSameWork.end()), all;
  for (const auto& [id, why] : kOtherWork) {
    EXPECT_TRUE(held.insert(id).second) << id;
  }
  for (const Tip& tip : known_tips()) {
    all.insert(tip.id);
  }
  EXPECT_EQ(held, all);
}

// The inputs of all steps of a call, concatenated, and the number of samples of each step.
std::pair<std::map<std::string, at::Tensor>, std::vector<std::int64_t>> taken(const Tip& tip, TipCase tip_case,
                                                                              bool with) {
  std::map<std::string, std::vector<at::Tensor>> fields;
  std::vector<std::int64_t> sizes;
  tip_case.watch = [&](const core::Batch& batch) {
    sizes.push_back(batch.size());
    for (const char* name : {"image", "ids", "target"}) {
      if (batch.find(name) != nullptr) {
        fields[name].push_back(batch[name].clone());
      }
    }
  };
  tip.make(tip_case, with).side.call();
  std::map<std::string, at::Tensor> joined;
  for (const auto& [name, parts] : fields) {
    joined[name] = at::cat(parts);
  }
  return {joined, sizes};
}

TEST(Tips, BothWaysTakeTheSameSamples) {
  struct Known {
    const char *id, *model;
    std::vector<std::int64_t> without, with;
  };
  for (const auto& [id, model, sizes_without, sizes_with] :
       std::vector<Known>{{"larger-batch", "mlp", {4, 4, 4, 4}, {16}},
                          {"larger-batch", "gpt", {4, 4, 4, 4}, {16}},
                          {"accumulation-16x1", "resnet34-slim", {4}, {2, 2}},
                          {"accumulation-16x2", "resnet34-slim", {4}, {4}}}) {
    SCOPED_TRACE(std::string(id) + " on " + model);
    const TipCase tip_case{.model = model, .batch = 4};
    const auto [without, parts_without] = taken(tip_called(id), tip_case, false);
    const auto [with, parts_with] = taken(tip_called(id), tip_case, true);
    EXPECT_EQ(parts_without, sizes_without);
    EXPECT_EQ(parts_with, sizes_with);
    ASSERT_EQ(without.size(), 2U);
    for (const auto& [name, tensor] : without) {
      EXPECT_TRUE(tensor.equal(with.at(name))) << name;
    }
  }
}

TEST(Tips, CopiesChangeNothing) {
  for (const char* id : {"pinned-memory", "async-copies"}) {
    for (const char* model : {"mlp", "cnn"}) {
      const TipCase tip_case{.model = model, .cores = 1, .dtype = at::kDouble, .batch = 4, .plain_sgd = true};
      EXPECT_LT(difference(tip_called(id), tip_case), 1e-8) << id << " on " << model;
    }
  }
}

TEST(Tips, TheOrderIsAllThatShufflingChanges) {
  const auto indices = [](bool with) {
    std::vector<std::int64_t> all;
    TipCase tip_case{.model = "cnn", .batch = 4};
    tip_case.watch = [&](const core::Batch& batch) {
      all.insert(all.end(), batch.indices().begin(), batch.indices().end());
    };
    tip_called("shuffled-order").make(tip_case, with).side.call();
    return all;
  };
  std::vector<std::int64_t> without = indices(false), with = indices(true);
  EXPECT_TRUE(std::ranges::is_sorted(without));
  EXPECT_FALSE(std::ranges::is_sorted(with));
  std::ranges::sort(with);
  EXPECT_EQ(with, without);
}

TEST(Tips, AStepThatThrowsLeavesNothingSwitchedOn) {
  int steps = 0;
  TipCase tip_case{.model = "mlp", .batch = 4};
  tip_case.watch = [&](const core::Batch&) {
    if (++steps == 2) {
      throw std::runtime_error("in the middle of a block");
    }
  };
  {
    const Way way = tip_called("profiler-off").make(tip_case, false);
    way.side.call();
    EXPECT_TRUE(torch::profiler::impl::profilerEnabled());
    EXPECT_THROW(way.side.call(), std::runtime_error);
  }
  EXPECT_FALSE(torch::profiler::impl::profilerEnabled());
  steps = 1;
  const int before = at::get_num_threads();
  at::set_num_threads(before + 2);
  tip_case = {.model = "cnn", .cores = before + 1, .batch = 2, .watch = tip_case.watch};
  const Way way = tip_called("loader-1-thread").make(tip_case, true);
  EXPECT_THROW(way.side.call(), std::runtime_error);
  EXPECT_EQ(at::get_num_threads(), before + 2);
  at::set_num_threads(before);
}

TEST(Tips, AdamwByParameterIsThatOfTheFusedKernel) {
  for (const char* model : {"unet", "gpt"}) {  // with their own optimizer, at rates where rounding does not matter
    const TipCase tip_case{.model = model, .dtype = at::kDouble, .batch = 2};
    EXPECT_LT(difference(tip_called("fused-optimizer"), tip_case), 1e-6) << model;
  }
}

TEST(Tips, AccumulationIsExactWithoutBatchNormAndIsNotWithIt) {
  TipCase tip_case{.model = "resnet34-slim-no-norm", .dtype = at::kDouble, .batch = 20, .plain_sgd = true};
  EXPECT_LT(difference(tip_called("accumulation-16x2"), tip_case), 1e-8);
  tip_case.model = "resnet34-slim";
  EXPECT_GT(difference(tip_called("accumulation-16x2"), tip_case), 1e-6);
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
    const TipCase tip_case{.model = model, .batch = 4, .plain_sgd = true};
    const auto without = after_two_calls(tip, tip_case, false), with = after_two_calls(tip, tip_case, true);
    double apart = 0, all = 0;
    for (const auto& [name, tensor] : with) {
      apart += (without.at(name) - tensor).square().sum().item<double>();
      all += tensor.square().sum().item<double>();
    }
    // Here the last norms of ResNet-50 see 16 values per channel, which magnifies rounding.
    EXPECT_LT(std::sqrt(apart / all), model == "resnet50" ? 0.5 : 0.02) << model;
    EXPECT_GT(apart, 0) << model;
  }
}

TEST(Tips, IdsAreOnesOwnAndModelsAreKnown) {
  std::set<std::string> ids, models;
  for (const BenchModelInfo& info : bench_models()) {
    EXPECT_TRUE(models.insert(info.name).second) << info.name;
  }
  EXPECT_EQ(bench_models().size(), 10U);
  for (const Tip& tip : known_tips()) {
    EXPECT_TRUE(ids.insert(tip.id).second) << tip.id;
    EXPECT_TRUE(tip.make) << tip.id;
    EXPECT_FALSE(tip.models.empty()) << tip.id;
    for (const std::string& model : tip.models) {
      EXPECT_TRUE(models.contains(model)) << tip.id << " " << model;
    }
  }
}

}  // namespace
}  // namespace stoker::study
