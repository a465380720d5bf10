// SPDX-License-Identifier: Apache-2.0
// The loader's batches depend only on the options and the position, not on threads, ranks or where the loader started.
#include "stoker/data/load/image_loader.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "stoker/base/error.h"
#include "support/images.h"
#include "support/later_clock.h"
#include "support/loader_batches.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::expect_same;
using ::testing::HasSubstr;
using testing::run;
using testing::small_png;
using testing::TempFolder;

class ImageLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 23; ++i) {
      folder_.write((i % 3 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", small_png(i, 14 + i % 4, 12));
    }
    options_.split = open_image_folder(folder_.path(), {.val = 0}).train;
    options_.policy = {.crop = augment::Crop::kRandomResized, .out_width = 8, .out_height = 6, .flip = true};
    options_.batch = 5;
    options_.seed = 3;
  }
  TempFolder folder_;
  ImageLoaderOptions options_;
};

TEST_F(ImageLoaderTest, HandsOutEverySampleWithItsLabel) {
  options_.threads = 2;
  const auto batches = run(options_, 12);
  std::vector<std::int64_t> seen;
  for (int step = 0; step < 5; ++step) {
    const core::Batch& batch = *batches[static_cast<std::size_t>(step)];
    EXPECT_EQ(batch.position(), (core::Position{0, step}));
    EXPECT_EQ(batch["image"].sizes(), (at::IntArrayRef{step < 4 ? 5 : 3, 6, 8, 3}));
    EXPECT_EQ(batch["image"].scalar_type(), at::kByte);
    EXPECT_TRUE(batch["image"].is_contiguous());
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t index = batch.indices()[static_cast<std::size_t>(i)];
      const bool is_b = options_.split.source->key(index).starts_with("b/");
      EXPECT_EQ(batch["target"].const_data_ptr<std::int64_t>()[i], is_b ? 1 : 0);
      seen.push_back(index);
    }
  }
  EXPECT_FALSE(batches[5].has_value());
  EXPECT_EQ(batches[6]->position(), (core::Position{1, 0}));
  EXPECT_FALSE(batches[11].has_value());
  EXPECT_NE(batches[6]->indices(), batches[0]->indices());
  std::ranges::sort(seen);
  EXPECT_EQ(seen.size(), 23u);
  EXPECT_EQ(std::ranges::unique(seen).size(), 0u);
}

// As evaluation needs it: the loader starts no sample of the next epoch before that epoch is requested. The next epoch
// then has the same batches.
TEST_F(ImageLoaderTest, OnceMakesNothingOfTheNextEpochBeforeItIsAskedFor) {
  options_.threads = 2;
  const auto expected = run(options_, 14);
  std::atomic<int> begun = 0;
  options_.once = true;
  options_.on_stage = [&](Stage stage, std::int64_t) { begun += stage == Stage::kOpen ? 1 : 0; };
  ImageLoader loader(options_);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    const std::optional<core::Batch> batch = loader.next();
    expect_same(batch, expected[i]);
    if (i == 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(begun, 23);
    }
  }
}

TEST_F(ImageLoaderTest, ThreadsAndDepthChangeNothing) {
  options_.threads = 0;
  const auto expected = run(options_, 14);
  for (const auto& [threads, depth] : {std::pair{1, 2}, {2, 1}, {2, 3}, {4, 7}}) {
    options_.threads = threads;
    options_.depth = depth;
    const auto batches = run(options_, 14);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} threads, depth {}, call {}", threads, depth, i));
      expect_same(batches[i], expected[i]);
    }
  }
}

TEST_F(ImageLoaderTest, ResumesAtEveryPosition) {
  const auto expected = run(options_, 14);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step <= 5; ++step) {
      options_.start = {epoch, step};
      ImageLoader loader(options_);
      EXPECT_EQ(loader.position(), options_.start);
      for (std::size_t i = static_cast<std::size_t>(epoch * 6 + step); i < expected.size(); ++i) {
        SCOPED_TRACE(fmt::format("start at {}.{}, call {}", epoch, step, i));
        expect_same(loader.next(), expected[i]);
      }
    }
  }
}

TEST_F(ImageLoaderTest, RanksTogetherAreTheWhole) {
  const auto expected = run(options_, 7);
  for (const int ranks : {2, 4, 8}) {
    std::vector<std::vector<std::optional<core::Batch>>> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      options_.rank = rank;
      options_.ranks = ranks;
      parts.push_back(run(options_, 7));
    }
    for (std::size_t i = 0; i < 7; ++i) {
      std::vector<at::Tensor> images, targets;
      std::int64_t rows = 0;
      for (const auto& part : parts) {
        ASSERT_EQ(part[i].has_value(), expected[i].has_value());
        if (part[i]) {
          EXPECT_EQ(part[i]->first_row(), rows);
          EXPECT_EQ(part[i]->global_size(), expected[i]->size());
          rows += part[i]->size();
          images.push_back((*part[i])["image"]);
          targets.push_back((*part[i])["target"]);
        }
      }
      if (expected[i]) {
        EXPECT_TRUE(at::cat(images).equal((*expected[i])["image"])) << ranks;
        EXPECT_TRUE(at::cat(targets).equal((*expected[i])["target"])) << ranks;
      }
    }
  }
}

TEST_F(ImageLoaderTest, ABadSampleComesAtItsBatchAndTheRestGoesOn) {
  folder_.write("b/13.png", "no image");
  for (const int threads : {0, 1, 3}) {
    options_.threads = threads;
    ImageLoader loader(options_);
    int errors = 0, batches = 0;
    for (int step = 0; step < 5; ++step) {
      try {
        const auto batch = loader.next();
        ASSERT_TRUE(batch.has_value());
        EXPECT_EQ(batch->position(), (core::Position{0, step}));
        ++batches;
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("b/13.png: is not an image"));
        ++errors;
      }
    }
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(batches, 4);
    EXPECT_FALSE(loader.next().has_value());
  }
}

// The batches are the same whether no images, some images (as many as there is room for) or all images stay decoded.
TEST_F(ImageLoaderTest, ImagesThatStayDecodedChangeNothing) {
  const auto expected = run(options_, 14);
  for (const std::int64_t room : {std::int64_t{0}, std::int64_t{2000}, std::int64_t{1} << 20}) {
    for (const int threads : {0, 1, 4}) {
      options_.store = std::make_shared<PixelStore>(options_.split.source->size(), room);
      options_.threads = threads;
      const auto batches = run(options_, 14);
      for (std::size_t i = 0; i < batches.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} bytes of room, {} threads, call {}", room, threads, i));
        expect_same(batches[i], expected[i]);
      }
      EXPECT_LE(options_.store->bytes(), room);
      if (room == 2000) {
        EXPECT_GE(options_.store->bytes(), 1300);  // an image has 504 to 612 bytes
      }
    }
  }
  std::int64_t held = 0;
  for (std::int64_t index = 0; index < options_.split.source->size(); ++index) {
    held += options_.store->find(index).pixels != nullptr;
  }
  EXPECT_EQ(held, 23);
  folder_.write("a/0.png", "gone");  // the files are not read any more
  const auto batches = run(options_, 14);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    expect_same(batches[i], expected[i]);
  }
}

// Two of 23 images are damaged. Their stand-ins and the reports to the listener depend only on the seed.
class BadImagesTest : public ImageLoaderTest {
 protected:
  void SetUp() override {
    ImageLoaderTest::SetUp();
    folder_.write("b/4.png", small_png(4, 14, 12).substr(0, 60));
    folder_.write("a/9.png", "no image");
    options_.bad.budget = 0.1;
    options_.bad.listener = [this](const core::BadSample& bad) {
      told_.push_back(fmt::format("{}.{} {}: {} -> {}", bad.epoch, bad.step, bad.name, bad.reason, bad.replaced_by));
    };
  }
  [[nodiscard]] std::string_view key(std::int64_t index) const { return options_.split.source->key(index); }
  std::vector<std::string> told_;
};

TEST_F(BadImagesTest, OthersStandInOnAnyThreadsAndAfterAResume) {
  options_.bad.on_bad = OnBad::kReplace;
  options_.threads = 0;
  const auto expected = run(options_, 14);
  const std::vector<std::string> told = told_;
  ASSERT_GE(told.size(), 4u);  // two epochs, and the start of the third
  EXPECT_THAT(told[0], ::testing::AnyOf(HasSubstr("4.png: damaged"), HasSubstr("9.png: is not an image (it begins")));
  std::int64_t samples = 0;
  for (std::size_t call = 0; call < 5; ++call) {
    const core::Batch& batch = *expected[call];
    samples += batch.size();
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const std::string_view name = key(batch.indices()[static_cast<std::size_t>(row)]);
      EXPECT_TRUE(name != "b/4.png" && name != "a/9.png");
      EXPECT_EQ(batch["target"].const_data_ptr<std::int64_t>()[row], name.starts_with("b/") ? 1 : 0) << "its own label";
    }
  }
  EXPECT_EQ(samples, 23);
  for (const auto& [threads, depth] : {std::pair{1, 2}, {2, 3}, {4, 7}}) {
    told_.clear();
    options_.threads = threads;
    options_.depth = depth;
    const auto batches = run(options_, 14);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} threads, depth {}, call {}", threads, depth, i));
      expect_same(batches[i], expected[i]);
    }
    EXPECT_EQ(told_, told);
  }
  for (int step = 0; step <= 5; ++step) {
    options_.start = {0, step};
    ImageLoader loader(options_);
    for (std::size_t i = static_cast<std::size_t>(step); i < expected.size(); ++i) {
      expect_same(loader.next(), expected[i]);
    }
  }
}

// The first run finds images bad, and the second refuses them: both have the same batches and the same stand-ins.
TEST_F(BadImagesTest, WhatIsKnownToBeBadChangesNoBatch) {
  const TempFolder cache;
  options_.bad.on_bad = OnBad::kReplace;
  const auto expected = run(options_, 14);
  std::vector<std::string> told = std::exchange(told_, {});
  const KnownBadOptions keeping{.cache = cache.path(), .clock = &testing::later_clock};
  for (const std::int64_t known : {0, 2}) {
    options_.known_bad.reset();  // its destructor writes the list
    options_.known_bad = std::make_shared<KnownBad>(options_.split.source, keeping);
    EXPECT_EQ(options_.known_bad->known(), known);
    const auto batches = run(options_, 14);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} known, call {}", known, i));
      expect_same(batches[i], expected[i]);
    }
    for (std::string& each : told) {
      each.insert(known == 0 ? each.size() : each.find(" -> "),
                  known == 0 ? "" : " (known bad and unchanged; retry_bad=on tries it again)");
    }
    EXPECT_EQ(std::exchange(told_, {}), told);
  }
}

TEST_F(BadImagesTest, BatchesGoWithoutThem) {
  options_.bad.on_bad = OnBad::kSkip;
  options_.threads = 2;
  const auto batches = run(options_, 6);
  std::int64_t samples = 0;
  for (std::size_t call = 0; call < 5; ++call) {
    const core::Batch& batch = *batches[call];
    samples += batch.size();
    ASSERT_EQ(batch["image"].size(0), batch.size());
    ASSERT_EQ(batch["target"].size(0), batch.size());
    EXPECT_TRUE(batch["image"].is_contiguous());
    const SampleReader reader(options_.split.source, 3, options_.policy);
    SampleWorkspace workspace;
    std::vector<std::uint8_t> row(static_cast<std::size_t>(reader.row_bytes()));
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t index = batch.indices()[static_cast<std::size_t>(i)];
      reader.read_row(index, options_.seed, 0, row, workspace);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), batch["image"][i].const_data_ptr<std::uint8_t>())) << key(index);
      EXPECT_EQ(batch["target"].const_data_ptr<std::int64_t>()[i], key(index).starts_with("b/") ? 1 : 0);
    }
  }
  EXPECT_EQ(samples, 21);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(BadImagesTest, OverTheBudgetTheRunEndsAtTheSameBatch) {
  options_.bad.on_bad = OnBad::kReplace;
  options_.bad.budget = 0.05;  // allows one of 23
  std::string where;
  for (const int threads : {0, 1, 4}) {
    options_.threads = threads;
    ImageLoader loader(options_);
    try {
      while (loader.next()) {
      }
      FAIL() << "no error";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("2 of 23 samples are unreadable so far, 1 is allowed"));
      EXPECT_THAT(error.what(), HasSubstr("a/9.png: is not an image"));
      EXPECT_THAT(error.what(), HasSubstr("b/4.png: damaged"));
      const std::string here = fmt::format("{}", loader.position().step);
      EXPECT_TRUE(where.empty() || where == here);
      where = here;
    }
  }
  options_.bad.budget = 0;
  EXPECT_THROW((void)run(options_, 6), DataError);
  options_.bad.budget = 1.5;
  EXPECT_THROW((void)run(options_, 6), ConfigError);
}

TEST_F(BadImagesTest, StandInsAreSpreadOverTheSplit) {
  std::vector<int> counts(10);
  for (std::int64_t sample = 0; sample < 10'000; ++sample) {
    ++counts[static_cast<std::size_t>(stand_in(5, 1, sample, 0, 10))];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 5 * 30);  // 30: the standard deviation
  }
  EXPECT_NE(stand_in(5, 1, 7, 0, 1'000'000), stand_in(5, 1, 7, 1, 1'000'000));
  EXPECT_NE(stand_in(5, 1, 7, 0, 1'000'000), stand_in(5, 2, 7, 0, 1'000'000));
}

TEST_F(ImageLoaderTest, EvaluationIsInOrderAndTailsMayBeDropped) {
  options_.shuffle = false;
  options_.drop_tail = true;
  options_.channels = 1;
  ImageLoader loader(options_);
  EXPECT_EQ(loader.steps_per_epoch(), 4);
  EXPECT_EQ(loader.next()->indices(), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ((*loader.next())["image"].sizes(), (at::IntArrayRef{5, 6, 8, 1}));
}

TEST_F(ImageLoaderTest, CountsWhatItDidAndWhatWasWaited) {
  for (const int threads : {0, 1, 2}) {
    options_.threads = threads;
    ImageLoader loader(options_);
    (void)loader.next();
    (void)loader.next();
    const core::SourceFigures figures = loader.figures().value();
    EXPECT_EQ(figures.threads, threads);
    EXPECT_GE(figures.samples, 10);
    EXPECT_GT(figures.busy_seconds(), 0);
    EXPECT_LE(figures.wait_seconds, figures.wall_seconds);
    if (threads == 0) {
      EXPECT_GT(figures.wait_seconds, 0) << "the consumer did the work";
    }
  }
}

TEST_F(ImageLoaderTest, EndsAtAnyMomentAndKeepsWhatItGave) {
  const auto expected = run(options_, 7);
  options_.threads = 3;
  for (std::size_t calls = 0; calls <= expected.size(); ++calls) {
    std::vector<std::optional<core::Batch>> kept;
    {
      ImageLoader loader(options_);
      for (std::size_t i = 0; i < calls; ++i) {
        kept.push_back(loader.next());
      }
    }
    for (std::size_t i = 0; i < calls; ++i) {
      SCOPED_TRACE(fmt::format("call {} of {}", i, calls));
      expect_same(kept[i], expected[i]);
    }
  }
}

TEST_F(ImageLoaderTest, AsksForPinnedMemoryWhereItIsWanted) {
  ImageLoaderOptions options = options_;
  options.pinned = true;
  EXPECT_THROW(ImageLoader{options}, c10::Error);  // without CUDA, torch cannot allocate it
}

TEST_F(ImageLoaderTest, RefusesWhatCannotBe) {
  const auto refused = [&](auto change) {
    ImageLoaderOptions options = options_;
    change(options);
    EXPECT_THROW(ImageLoader{options}, ConfigError);
  };
  refused([](auto& o) { o.batch = 0; });
  refused([](auto& o) { o.threads = -1; });
  refused([](auto& o) { o.depth = -1; });
  refused([](auto& o) { o.channels = 4; });
  refused([](auto& o) { o.start = {0, 6}; });
  refused([](auto& o) { o.start = {-1, 0}; });
  refused([](auto& o) { o.policy.out_width = 0; });
  refused([](auto& o) { o.split.labels = LabelList::of(std::vector<std::int64_t>{0, 1}); });
  ImageLoaderOptions large = options_;
  large.batch = 1000;  // larger than the data set: one batch of all samples
  EXPECT_EQ(ImageLoader(large).next()->size(), 23);
}

}  // namespace
}  // namespace stoker::data
