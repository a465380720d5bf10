// SPDX-License-Identifier: Apache-2.0
// Each prediction arrives once and in order, while the next batch is already being read. Errors of reading are thrown.
#include "stoker/job/predict.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/image/classifier.h"

namespace stoker::job {
namespace {

LoadedModel classifier() {
  models::ModelOptions options;
  options.classes = 3;
  options.image_size = 8;
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = {.image_size = 8, .resize = 8, .mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}};
  classifier.classes = {"a", "b", "c"};
  LoadedModel loaded;
  loaded.card.precision = "bf16";
  loaded.model = std::make_unique<tasks::ImageClassifier>(models::make_network("cnn", options), classifier);
  return loaded;
}

// Seven images, each of a single grey. Counts the calls.
class Greys final : public tasks::UnlabelledSource {
 public:
  explicit Greys(std::int64_t fails_at = -1) : fails_at_(fails_at) {}
  [[nodiscard]] const std::vector<std::string>& findings() const override { return findings_; }
  [[nodiscard]] std::optional<tasks::UnlabelledBatch> next(std::int64_t samples) override {
    {
      const std::lock_guard lock(mutex_);
      ++calls_;
    }
    called_.notify_all();
    if (fails_at_ >= 0 && given_ >= fails_at_) {
      fail<IoError>("test", "the disk is gone");
    }
    const std::int64_t count = std::min<std::int64_t>(samples, 7 - given_);
    if (count == 0) {
      return std::nullopt;
    }
    tasks::UnlabelledBatch result{core::Batch({}, std::vector<std::int64_t>(static_cast<std::size_t>(count))), {}};
    const at::Tensor images = at::full({count, 8, 8, 3}, 0, at::kByte);
    for (std::int64_t i = 0; i < count; ++i, ++given_) {
      images[i].fill_(30 * given_);
      result.samples.push_back({std::to_string(given_), 0, ""});
    }
    result.batch.set("image", images);
    return result;
  }
  // Whether next() was called this many times; gives up after 20 seconds.
  bool called(int times) {
    std::unique_lock lock(mutex_);
    return called_.wait_for(lock, std::chrono::seconds(20), [&] { return calls_ >= times; });
  }

 private:
  std::int64_t fails_at_, given_ = 0;
  std::vector<std::string> findings_;
  std::mutex mutex_;
  std::condition_variable called_;
  int calls_ = 0;
};

struct Result {
  std::vector<std::string> names;
  std::vector<double> probabilities;
};

Result predicted(std::int64_t batch) {
  LoadedModel loaded = classifier();
  Greys source;
  Result result;
  predict(loaded, source, 1, batch, [&](const Prediction& prediction) {
    result.names.push_back(prediction.sample.file.native());
    result.probabilities.push_back(prediction.guesses.at(0).probability);
  });
  return result;
}

TEST(Predict, EachSampleOnceAndInOrder) {
  const Result whole = predicted(7);
  EXPECT_EQ(whole.names, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6"}));
  for (const std::int64_t batch : {1, 2, 3, 64}) {
    const Result parts = predicted(batch);
    EXPECT_EQ(parts.names, whole.names);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_NEAR(parts.probabilities[i], whole.probabilities[i], 0.02) << i;  // bfloat16
    }
  }
}

TEST(Predict, ReadsTheNextBatchWhileOneIsUsed) {
  LoadedModel loaded = classifier();
  Greys source;
  bool first = true;
  predict(loaded, source, 1, 2, [&](const Prediction&) {
    if (std::exchange(first, false)) {
      EXPECT_TRUE(source.called(3)) << "nothing is read while predictions are used";
    }
  });
}

TEST(Predict, WhatReadingOrUsingThrowsArrives) {
  const int before = at::get_num_threads();
  LoadedModel loaded = classifier();
  Greys broken(4), whole;
  int seen = 0;
  EXPECT_THROW(predict(loaded, broken, 1, 2, [&](const Prediction&) { ++seen; }), IoError);
  EXPECT_EQ(seen, 4) << "samples that were read before the error must be predicted";
  EXPECT_THROW(predict(loaded, whole, 1, 2, [](const Prediction&) { throw std::runtime_error("full"); }),
               std::runtime_error);
  EXPECT_EQ(at::get_num_threads(), before);
}

}  // namespace
}  // namespace stoker::job
