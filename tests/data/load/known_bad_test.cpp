// SPDX-License-Identifier: Apache-2.0
// Later runs refuse an image that was found bad, with the same reason, until its file changes. They refuse no others.
#include "stoker/data/load/known_bad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/data/load/sample_reader.h"
#include "support/images.h"
#include "support/later_clock.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::HasSubstr;
using testing::later_clock;
using ::testing::Not;
using testing::small_png;
using testing::TempFolder;

constexpr std::string_view kMark = " (known bad and unchanged; retry_bad=on tries it again)";
const augment::ImagePolicy kPolicy{.crop = augment::Crop::kRandomResized, .out_width = 8, .out_height = 8};

class KnownBadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      data_.write(fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", i), small_png(i));
    }
    data_.write("a/text, \"odd\".png", "no image at all");
    data_.write("b/empty.png", "");
    data_.write("b/half.png", small_png(9).substr(0, 60));
  }
  // The errors of all samples in the order of a run, with one reader per split; empty for a good sample.
  [[nodiscard]] std::vector<std::string> run() const {
    const ImageFolder found = open_image_folder(data_.path(), {.val = 0}, {}, {});
    std::vector<std::string> errors;
    for (const ImageSplit* split : {&found.train, &found.val}) {
      const auto known = std::make_shared<KnownBad>(split->source, options_);
      const SampleReader reader(split->source, 3, kPolicy, {.known_bad = known, .limits = {.strict = options_.strict}});
      std::vector<std::uint8_t> row(static_cast<std::size_t>(reader.row_bytes()));
      SampleWorkspace workspace;
      for (const std::int64_t sample : split->samples) {
        errors.emplace_back();
        try {
          reader.read_row(sample, 0, 0, row, workspace);
        } catch (const DataError& error) {
          errors.back() = error.what();
        }
      }
    }
    return errors;
  }
  // Which samples are refused without being tried.
  [[nodiscard]] static std::vector<bool> refused(const std::vector<std::string>& errors) {
    std::vector<bool> result;
    for (const std::string& error : errors) {
      result.push_back(error.ends_with(kMark));
    }
    return result;
  }
  [[nodiscard]] static std::vector<bool> bad(const std::vector<std::string>& errors) {
    std::vector<bool> result;
    for (const std::string& error : errors) {
      result.push_back(!error.empty());
    }
    return result;
  }
  [[nodiscard]] std::filesystem::path list() const {
    return std::filesystem::directory_iterator(cache_ / "bad")->path();
  }

  TempFolder data_, cache_;
  KnownBadOptions options_{.cache = cache_.path(), .clock = &later_clock};
};

TEST_F(KnownBadTest, IsRefusedTheNextTimeWithTheSameReason) {
  const std::vector<std::string> first = run(), second = run();
  ASSERT_EQ(first.size(), 9U);
  EXPECT_EQ(std::ranges::count(bad(first), true), 3);
  EXPECT_EQ(refused(first), std::vector<bool>(9));
  EXPECT_EQ(bad(second), bad(first));
  EXPECT_EQ(refused(second), bad(first));
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!first[i].empty()) {
      const std::string_view named = std::string_view(first[i]).substr(first[i].find("] "));
      EXPECT_EQ(second[i].substr(second[i].find("] ")), std::string(named) + std::string(kMark));
    }
  }
  EXPECT_EQ(run(), second);
}

TEST_F(KnownBadTest, AChangedFileIsTriedAgain) {
  const std::vector<std::string> before = run();
  data_.write("b/empty.png", small_png(1));
  data_.write("a/text, \"odd\".png", "no image at ALL");
  std::filesystem::remove(data_ / "b/half.png");
  const std::vector<std::string> after = run();
  EXPECT_EQ(std::ranges::count(bad(after), true), 1);
  EXPECT_EQ(refused(after), std::vector<bool>(8));
  const std::vector<std::string> again = run();
  EXPECT_EQ(refused(again), bad(after));
  EXPECT_THAT(read_text(list()), Not(HasSubstr("empty.png")));
}

TEST_F(KnownBadTest, AllAreTriedAgainWhereThatIsAsked) {
  const std::vector<std::string> first = run();
  options_.retry = true;
  EXPECT_EQ(run(), first);
  options_.retry = false;
  EXPECT_EQ(refused(run()), bad(first));
}

// An image that is bad only because of a warning. A non-strict run accepts it and does not use the strict list; a later
// strict run refuses it.
TEST_F(KnownBadTest, StrictRunsHaveAListOfTheirOwn) {
  const std::string whole = read_text(testing::source_folder() / "tests/data/formats/smooth.jpg");
  const std::size_t scan = whole.find("\xFF\xDA");
  ASSERT_NE(scan, std::string::npos);
  data_.write("b/cut.jpg", whole.substr(0, scan + 14));  // the header of the scan without any of its data
  const std::vector<std::string> strict = run();
  EXPECT_EQ(std::ranges::count(bad(strict), true), 4);
  options_.strict = false;
  EXPECT_EQ(std::ranges::count(bad(run()), true), 3);
  EXPECT_EQ(std::ranges::count(refused(run()), true), 3);
  options_.strict = true;
  EXPECT_EQ(refused(run()), bad(strict));
}

TEST_F(KnownBadTest, WhatMayPassIsNotRemembered) {
  const ImageFolder found = open_image_folder(data_.path(), {.val = 0}, {}, {});
  {
    KnownBad known(found.train.source, options_);
    known.learn(0, "a/0.png: is good");
    std::filesystem::remove(data_ / "b/empty.png");
    known.learn(6, "b/empty.png: is not there");
  }
  EXPECT_FALSE(std::filesystem::exists(cache_ / "bad"));
  options_.clock = &file_clock;  // the file is so new that it may still be changing
  (void)run();
  EXPECT_FALSE(std::filesystem::exists(cache_ / "bad"));
}

// An image that is damaged in its lower part is good for a crop above the damage, so it is tried for every crop.
TEST_F(KnownBadTest, AnImageWithGoodPartsIsNotRemembered) {
  const std::string whole =
      read_text(testing::source_folder() / "tests/data/broken-images/exif/hopper_orientation_5.jpg");
  data_.write("a/cut.jpg", whole.substr(0, whole.size() / 2));
  data_.write("a/stub.jpg", whole.substr(0, 200));
  const ImageFolder found = open_image_folder(data_.path(), {.val = 0}, {}, {});
  {
    KnownBad known(found.train.source, options_);
    for (std::int64_t i = 0; i < found.train.size(); ++i) {
      known.learn(i, "any");
    }
  }
  const std::string text = read_text(list());
  EXPECT_THAT(text, HasSubstr("a/stub.jpg"));
  EXPECT_THAT(text, Not(HasSubstr("a/cut.jpg")));
  EXPECT_EQ(KnownBad(found.train.source, options_).known(), 4);
  options_.channels = 1;
  EXPECT_EQ(KnownBad(found.train.source, options_).known(), 0) << "with other channels the image may be good";
}

// The same path occurs in train and in val of one tar file, and only one of the two images is bad.
TEST_F(KnownBadTest, SplitsOfOnePlaceKeepTheirOwn) {
  const TempFolder tars;
  tars.write("x.tar", testing::TarBuilder()
                          .add("train/a/1.png", small_png(1))
                          .add("train/b/1.png", "bad one")
                          .add("val/a/1.png", "bad two")
                          .add("val/b/1.png", small_png(2))
                          .done());
  const ImageFolder found = open_image_folder(tars / "x.tar", {.val = 0}, {}, {});
  for (const int pass : {0, 1}) {
    KnownBad train(found.train.source, options_), val(found.val.source, options_);
    EXPECT_EQ(train.known(), pass);
    EXPECT_EQ(val.known(), pass);
    for (const std::int64_t sample : {0, 1}) {
      train.learn(sample, "why");
      val.learn(sample, "why");
    }
    if (pass == 1) {
      EXPECT_NO_THROW(train.refuse(0));
      EXPECT_THROW(train.refuse(1), DataError);
      EXPECT_THROW(val.refuse(0), DataError);
      EXPECT_NO_THROW(val.refuse(1));
    }
  }
}

TEST_F(KnownBadTest, ADamagedListIsNone) {
  const std::vector<std::string> first = run();
  const std::string whole = read_text(list());
  const ImageFolder found = open_image_folder(data_.path(), {.val = 0}, {}, {});
  ASSERT_EQ(KnownBad(found.train.source, options_).known(), 3);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    for (const std::string& text : {damaged, whole.substr(0, at)}) {
      std::ofstream(list(), std::ios::binary | std::ios::trunc) << text;
      ASSERT_EQ(KnownBad(found.train.source, options_).known(), 0) << "byte " << at;
    }
  }
  EXPECT_EQ(run(), first);
}

TEST_F(KnownBadTest, WithoutAPlaceToKeepItAllAreTried) {
  cache_.write("file", "");
  for (const std::filesystem::path& cache : {cache_ / "file" / "x", std::filesystem::path()}) {
    options_.cache = cache;
    const std::vector<std::string> first = run();
    EXPECT_EQ(std::ranges::count(bad(first), true), 3);
    EXPECT_EQ(run(), first);
  }
}

// Two runs find different images bad. Each started with the list as it was before the other wrote.
TEST_F(KnownBadTest, ProcessesThatWriteTheSameListLoseNothing) {
  const ImageFolder found = open_image_folder(data_.path(), {.val = 0}, {}, {});
  const auto learn = [&](KnownBad& known, std::string_view key) {
    for (std::int64_t i = 0; i < found.train.source->size(); ++i) {
      if (found.train.source->key(i) == key) {
        known.learn(i, "bad");
      }
    }
  };
  {
    auto one = std::make_unique<KnownBad>(found.train.source, options_);
    auto other = std::make_unique<KnownBad>(found.train.source, options_);
    learn(*one, "b/empty.png");
    one.reset();
    learn(*other, "b/half.png");
  }
  EXPECT_EQ(KnownBad(found.train.source, options_).known(), 2);
}

// One file whose inode has its highest bit set, as on some network file systems.
class FarInode final : public ByteSource {
 public:
  explicit FarInode(std::filesystem::path place) : place_(std::move(place)) {}
  [[nodiscard]] std::int64_t size() const override { return 1; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override { bytes.clear(); }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "a/1.png"; }
  [[nodiscard]] std::string name(std::int64_t) const override { return "a/1.png"; }
  [[nodiscard]] std::optional<SampleFile> file_of(std::int64_t) const override {
    return SampleFile{{13374083471883223911U, 0, 1, 1}, 0};
  }
  [[nodiscard]] std::filesystem::path place() const override { return place_; }

 private:
  std::filesystem::path place_;
};

TEST_F(KnownBadTest, AnyInodeIsRemembered) {
  const auto source = std::make_shared<FarInode>(data_.path());
  KnownBad(source, options_).learn(0, "a/1.png: is empty");
  EXPECT_EQ(KnownBad(source, options_).known(), 1);
}

}  // namespace
}  // namespace stoker::data
