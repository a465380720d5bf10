// SPDX-License-Identifier: Apache-2.0
// Weights as histograms: every value is counted in its bin, and a run emits them with each checkpoint.
#include "stoker/job/weight_histograms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "stoker/job/job.h"
#include "support/image_set.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;

TEST(WeightHistograms, EveryFiniteValueIsCountedInItsBin) {
  testing::ToyTrainable model(at::kFloat);
  const auto& parameters = model.parameters();
  float* bias = parameters[1].tensor.data_ptr<float>();
  bias[0] = std::numeric_limits<float>::quiet_NaN();
  bias[1] = std::numeric_limits<float>::infinity();
  std::fill_n(parameters[2].tensor.data_ptr<float>(), 32, 0.25F);
  std::fill_n(parameters[3].tensor.data_ptr<float>(), 4, std::numeric_limits<float>::quiet_NaN());
  const core::WeightHistograms event = weight_histograms(model, 7);
  EXPECT_EQ(event.step, 7);
  ASSERT_EQ(event.weights.size(), 3U);  // head.bias has no finite value
  for (const std::size_t which : {0, 1}) {
    const core::Histogram& found = event.weights[which];
    EXPECT_EQ(found.name, parameters[which].name);
    ASSERT_EQ(found.counts.size(), 64U);
    std::vector<double> counts(64, 0);
    const float* values = parameters[which].tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < parameters[which].tensor.numel(); ++i) {
      if (std::isfinite(values[i])) {
        EXPECT_LE(found.low, values[i]);
        EXPECT_GE(found.high, values[i]);
        const double place = (values[i] - found.low) / (found.high - found.low) * 64;
        counts[std::min<std::size_t>(63, static_cast<std::size_t>(place))] += 1;
      }
    }
    EXPECT_EQ(found.counts, counts) << found.name;
  }
  EXPECT_EQ(event.weights[2].counts, std::vector<double>{32});
  EXPECT_EQ(event.weights[2].low, -0.25);
  EXPECT_EQ(event.weights[2].high, 0.75);
}

class Keeper final : public core::EventSink {
 public:
  explicit Keeper(std::map<std::int64_t, core::WeightHistograms>& seen) : seen_(seen) {}
  void on(const core::Event& event) override {
    if (const auto* histograms = std::get_if<core::WeightHistograms>(&event)) {
      EXPECT_TRUE(seen_.emplace(histograms->step, *histograms).second) << histograms->step << " twice";
    }
  }

 private:
  std::map<std::int64_t, core::WeightHistograms>& seen_;
};

TEST(WeightHistograms, ComeOnRequestWithEachCheckpoint) {
  const TempFolder folder;
  testing::write_striped_set(folder, "data/train/", 6);
  for (const bool asked : {false, true}) {
    std::vector<std::string> words = {"device=cpu", "epochs=2",       "batch=6",  "threads=0",
                                      "intra_op=1", "precision=fp32", "model=mlp"};
    if (asked) {
      words.push_back("tensorboard=histograms");
    }
    Request request = make_request({}, words);
    request.data = folder / "data";
    request.run = (folder / (asked ? "asked" : "plain")).native();
    Job job = Job::prepare(request, [](const std::string&) {});
    std::map<std::int64_t, core::WeightHistograms> seen;
    std::vector<std::unique_ptr<core::EventSink>> sinks;
    sinks.push_back(std::make_unique<Keeper>(seen));
    const std::atomic<bool> stop = false;
    const Outcome outcome = job.train(std::move(sinks), stop);
    if (!asked) {
      EXPECT_TRUE(seen.empty());
      continue;
    }
    ASSERT_EQ(seen.size(), 2U);  // one per epoch
    EXPECT_EQ(seen.rbegin()->first, outcome.step);
    EXPECT_NE(seen.begin()->second.weights.front().counts, seen.rbegin()->second.weights.front().counts);
  }
}

}  // namespace
}  // namespace stoker::job
