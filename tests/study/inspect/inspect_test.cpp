// SPDX-License-Identifier: Apache-2.0
// Inspections of image folders find planted faults and find nothing in clean data. Threads and a stop do not change the
// findings.
#include "stoker/study/inspect/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "stoker/base/error.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/study/inspect/report.h"
#include "support/image_set.h"
#include "support/tar_builder.h"

namespace stoker::study {
namespace {

using stoker::testing::png_of;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A scene of soft blobs. Each number gives another scene, which is the same at every size.
augment::Image scene(int number, int width = 60, int height = 48) {
  augment::Image image;
  image.reshape(width, height, 3);
  std::uint8_t* out = image.pixels.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double u = static_cast<double>(x) / width, v = static_cast<double>(y) / height;
      for (int c = 0; c < 3; ++c) {
        double value = 128;
        for (int wave = 1; wave <= 5; ++wave) {
          const double turn = number * 1.7 * wave + wave * wave;
          value += 22 * std::sin((7 * u * std::cos(turn) + 6 * v * std::sin(turn)) * wave * 0.7 + turn + 0.3 * c);
        }
        *out++ = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return image;
}

std::string jpeg_of(const augment::Image& image, int quality = 90) {
  return std::string(as_text(data::encode_jpeg(image.view(), quality)));
}

augment::Image one_colour(int width, int height) {
  augment::Image image;
  image.reshape(width, height, 3);
  std::ranges::fill(image.pixels, std::uint8_t{77});
  return image;
}

// 2 classes, each with 12 scenes in train and 3 in val; all scenes differ.
void write_clean(const TempFolder& folder) {
  for (int number = 0; number < 30; ++number) {
    const std::string split = number < 24 ? "train/" : "val/", name = number % 2 == 0 ? "even/" : "odd/";
    folder.write(split + name + std::to_string(number) + ".jpg", jpeg_of(scene(number)));
  }
}

const DataFinding* find(const InspectReport& report, const std::string& id) {
  const auto found = std::ranges::find(report.findings, id, &DataFinding::id);
  return found == report.findings.end() ? nullptr : &*found;
}

InspectReport report_of(const std::filesystem::path& path, const InspectOptions& options = {}) {
  return InspectReport(inspect_images(path, options));
}

TEST(Inspect, NothingIsSaidOfCleanData) {
  const TempFolder folder;
  write_clean(folder);
  const InspectReport report = report_of(folder.path());
  EXPECT_THAT(report.findings, IsEmpty()) << inspect_text(report);
  EXPECT_EQ(inspect_verdict(report), "Nothing wrong in 30 images");
  ASSERT_EQ(report.figures.splits.size(), 2U);
  EXPECT_EQ(report.figures.splits[0].by_class, (std::vector<std::int64_t>{12, 12}));
  EXPECT_EQ(report.figures.splits[1].images, 6);
  EXPECT_EQ(report.figures.formats, (std::map<std::string, std::int64_t>{{"JPEG", 30}}));
  EXPECT_EQ(report.figures.width.median, 60);
  EXPECT_EQ(report.found.sums.pixels, 30 * 60 * 48);
}

TEST(Inspect, WhatWasPlantedIsFoundWorstFirst) {
  const TempFolder folder;
  write_clean(folder);
  folder.write("val/even/leak.jpg", jpeg_of(scene(2)));                // train/even/2.jpg, byte for byte
  folder.write("val/even/pixels.png", png_of(scene(90)));              // the same pixels ...
  folder.write("train/even/pixels.ppm.png", png_of(scene(90)) + "x");  // ... in another file
  folder.write("train/odd/turncoat.jpg", jpeg_of(scene(4)));           // train/even/4.jpg under another class
  folder.write("train/odd/again.jpg", jpeg_of(scene(5)));              // train/odd/5.jpg
  folder.write("val/odd/small.jpg", jpeg_of(scene(7, 90, 72), 70));    // looks like train/odd/7.jpg
  folder.write("train/odd/plain.png", png_of(one_colour(40, 40)));
  folder.write("train/odd/tiny.png", png_of(scene(40, 7, 20)));
  folder.write("train/odd/strip.png", png_of(scene(41, 100, 20)));
  folder.write("train/odd/bad.jpg", jpeg_of(scene(42)).substr(0, 400));
  folder.write("train/odd/empty.png", "");
  folder.write("train/odd/caf\xE9.png", "no image");
  const InspectReport report = report_of(folder.path());
  std::vector<std::string> ids;
  for (const DataFinding& finding : report.findings) {
    ids.push_back(finding.id);
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"leak", "labels", "bad", "same", "alike-leak", "plain", "tiny", "extreme",
                                           "grey"}))
      << inspect_text(report);
  EXPECT_EQ(find(report, "leak")->count, 2);
  EXPECT_EQ(find(report, "leak")->groups.size(), 2U);
  EXPECT_THAT(find(report, "leak")->example,
              AllOf(HasSubstr("2.jpg (train, even)"), HasSubstr("leak.jpg (val, even)")));
  EXPECT_EQ(find(report, "labels")->count, 2);
  EXPECT_THAT(find(report, "labels")->example, AllOf(HasSubstr("even/4.jpg"), HasSubstr("turncoat.jpg")));
  EXPECT_EQ(find(report, "bad")->count, 3);
  EXPECT_EQ(find(report, "same")->count, 1);
  EXPECT_THAT(find(report, "same")->example, AllOf(HasSubstr("odd/5.jpg"), HasSubstr("again.jpg")));
  EXPECT_EQ(find(report, "alike-leak")->count, 1);
  EXPECT_THAT(find(report, "alike-leak")->example, AllOf(HasSubstr("odd/7.jpg"), HasSubstr("small.jpg")));
  EXPECT_THAT(find(report, "plain")->example, HasSubstr("plain.png, 40 x 40"));
  EXPECT_THAT(find(report, "tiny")->example, HasSubstr("tiny.png, 7 x 20"));
  EXPECT_THAT(find(report, "extreme")->example, HasSubstr("strip.png, 100 x 20"));
  const auto json = nlohmann::json::parse(inspect_json(report));
  EXPECT_EQ(json["bad"], 3);
  EXPECT_EQ(json["looked"], 42);
  std::map<std::string, std::string> reasons;
  for (const auto& each : json["findings"][2]["images"]) {
    reasons[each["file"].get<std::string>().substr(folder.path().native().size())] = each["reason"];
  }
  EXPECT_EQ(reasons.size(), 3U);
  EXPECT_THAT(reasons["/train/odd/bad.jpg"], HasSubstr("damaged"));
  EXPECT_THAT(reasons["/train/odd/empty.png"], HasSubstr("0 bytes"));
  EXPECT_THAT(reasons["/train/odd/caf\\xe9.png"], HasSubstr("no image"));
  EXPECT_THAT(inspect_text(report), HasSubstr("3 things are wrong, 5 are doubtful"));
}

TEST(Inspect, AnExampleShowsWhatTheFindingIsOf) {
  const TempFolder folder;
  write_clean(folder);
  folder.write("train/even/2-again.jpg", jpeg_of(scene(2)));  // sorts before the copy in val
  folder.write("val/even/leak.jpg", jpeg_of(scene(2)));
  const InspectReport report = report_of(folder.path());
  ASSERT_NE(find(report, "leak"), nullptr);
  EXPECT_EQ(find(report, "leak")->count, 1);
  EXPECT_THAT(find(report, "leak")->example, HasSubstr("leak.jpg (val, even)"));
  EXPECT_EQ(find(report, "leak")->groups.front().size(), 3U);
  ASSERT_NE(find(report, "same"), nullptr);
  EXPECT_EQ(find(report, "same")->count, 1);
  EXPECT_THAT(find(report, "same")->example, HasSubstr("2-again.jpg (train, even)"));
}

// The report without the values that differ from run to run.
nlohmann::json lasting(const InspectReport& report) {
  auto json = nlohmann::json::parse(inspect_json(report));
  for (const char* member : {"date", "seconds", "threads"}) {
    json.erase(member);
  }
  return json;
}

TEST(Inspect, ThreadsChangeNothing) {
  const TempFolder folder;
  stoker::testing::write_striped_set(folder, "train/", 40);
  stoker::testing::write_striped_set(folder, "test/", 10, 30);
  folder.write("train/plain/x.png", "x");
  folder.write("train/across/y.jpg", "y");
  const nlohmann::json one = lasting(report_of(folder.path(), {.threads = 1}));
  EXPECT_EQ(one["looked"], 152);
  EXPECT_EQ(one["bad"], 2);
  for (const int threads : {2, 5}) {
    EXPECT_EQ(lasting(report_of(folder.path(), {.threads = threads})), one) << threads;
  }
}

TEST(Inspect, TarsAreAsTheirFiles) {
  const TempFolder files, tars;
  write_clean(files);
  for (const std::string split : {"train", "val"}) {
    stoker::testing::TarBuilder tar;
    for (int number = 0; number < 30; ++number) {
      if ((number < 24) == (split == "train")) {
        const std::string name = (number % 2 == 0 ? "even/" : "odd/") + std::to_string(number) + ".jpg";
        tar.add(name, jpeg_of(scene(number)));
      }
    }
    tars.write(split + "-000.tar", tar.done());
  }
  nlohmann::json of_files = lasting(report_of(files.path())), of_tars = lasting(report_of(tars.path()));
  EXPECT_EQ(of_tars["layout"], "tar shards");
  for (const char* member : {"channels", "splits", "classes", "width", "file_bytes"}) {
    EXPECT_EQ(of_tars[member], of_files[member]) << member;
  }
}

TEST(Inspect, AStopKeepsWhatWasSeen) {
  const TempFolder folder;
  write_clean(folder);
  folder.write("train/even/00.jpg", "x");  // the first image
  int asked = 0;
  const InspectReport report = report_of(folder.path(), {.threads = 1, .stop = [&] { return ++asked == 4; }});
  EXPECT_TRUE(report.found.stopped);
  EXPECT_EQ(report.found.images.size(), 4U);
  EXPECT_EQ(report.found.total, 31);
  ASSERT_EQ(report.found.bad.size(), 1U);
  EXPECT_THAT(report.found.name(report.found.bad.begin()->first), HasSubstr("00.jpg"));
  ASSERT_NE(find(report, "sample"), nullptr);
  EXPECT_THAT(find(report, "sample")->text, AllOf(HasSubstr("4 of 31 images"), HasSubstr("stopped")));
  EXPECT_THAT(inspect_page(report), HasSubstr("data:image/jpeg"));
}

TEST(Inspect, ASampleIsSpread) {
  const TempFolder folder;
  write_clean(folder);
  const InspectReport report = report_of(folder.path(), {.images = 10});
  ASSERT_EQ(report.found.images.size(), 10U);
  EXPECT_FALSE(report.found.stopped);
  EXPECT_EQ(report.figures.splits[0].looked, 8);
  EXPECT_EQ(report.figures.splits[1].looked, 2);
  EXPECT_EQ(report.figures.splits[0].images, 24);
  EXPECT_EQ(report_of(folder.path(), {.images = 1000}).found.images.size(), 30U);
}

TEST(Inspect, ClassesThatAreMissingOrFew) {
  const TempFolder folder;
  for (int number = 0; number < 31; ++number) {
    folder.write("train/" + std::string(number < 30 ? "many/" : "one/") + std::to_string(number) + ".png",
                 png_of(scene(number, 20, 20)));
  }
  folder.write("val/many/50.png", png_of(scene(50, 20, 20)));
  folder.write("val/new/51.png", png_of(scene(51, 20, 20)));
  const InspectReport report = report_of(folder.path());
  ASSERT_NE(find(report, "unknown-class"), nullptr) << inspect_text(report);
  EXPECT_THAT(find(report, "unknown-class")->example, HasSubstr("new"));
  ASSERT_NE(find(report, "missing"), nullptr);
  EXPECT_THAT(find(report, "missing")->example, HasSubstr("one"));
  ASSERT_NE(find(report, "imbalance"), nullptr);
  EXPECT_THAT(find(report, "imbalance")->text, HasSubstr("30 times"));
  EXPECT_EQ(find(report, "few")->count, 1);
}

TEST(Inspect, OneClassIsLookedAtAndNamed) {
  const TempFolder folder;
  folder.write("only/1.png", png_of(scene(1)));
  folder.write("only/2.png", "x");
  const InspectReport report = report_of(folder.path());
  ASSERT_NE(find(report, "one-class"), nullptr);
  EXPECT_NE(find(report, "bad"), nullptr);
  EXPECT_THAT(inspect_page(report), HasSubstr("only one class"));
}

TEST(Inspect, AllBadIsStillAReport) {
  const TempFolder folder;
  folder.write("a/1.png", "x");
  folder.write("b/1.png", "y");
  const InspectReport report = report_of(folder.path());
  EXPECT_EQ(report.found.bad.size(), 2U);
  EXPECT_THAT(inspect_text(report), HasSubstr("2 of 2 images (100 %)"));
  EXPECT_TRUE(nlohmann::json::parse(inspect_json(report))["channels"]["mean"].empty());
  EXPECT_THAT(inspect_page(report), HasSubstr("cannot be read"));
}

TEST(Inspect, RefusesDataThatAreNotImages) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THROW((void)inspect_images(folder / "empty", {}), DataError);
  EXPECT_THROW((void)inspect_images(folder / "nowhere", {}), DataError);
  folder.write("table.csv", "a,b\n1,2\n");
  EXPECT_THROW((void)inspect_images(folder / "table.csv", {}), DataError);
  EXPECT_THROW((void)inspect_images(folder.path(), {.images = -1}), ConfigError);
}

TEST(Inspect, WhatTellsTheClassWithoutALookIsNamed) {
  const TempFolder folder;
  for (int number = 0; number < 60; ++number) {
    const bool png = number % 2 == 0;
    folder.write((png ? "drawn/" : "taken/") + std::to_string(number) + (png ? ".png" : ".jpg"),
                 png ? png_of(scene(number)) : jpeg_of(scene(number)));
  }
  const InspectReport report = report_of(folder.path());
  ASSERT_NE(find(report, "tell-tale"), nullptr) << inspect_text(report);
  EXPECT_THAT(find(report, "tell-tale")->text, AllOf(HasSubstr("file format"), HasSubstr("100 %"), HasSubstr("50 %")));
  EXPECT_EQ(find(report, "tell-tale")->example, "30 of the 30 images of kind JPEG are \"taken\"");
  EXPECT_THAT(find(report, "tell-tale")->advice, HasSubstr("mix formats, colours and sizes over all classes"));
}

TEST(Inspect, LinesFitATerminal) {
  const TempFolder folder;
  write_clean(folder);
  folder.write("train/odd/bad.jpg", "x");
  folder.write("val/even/leak.jpg", jpeg_of(scene(2)));
  std::istringstream lines(inspect_text(report_of(folder.path())));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U + folder.path().native().size()) << line;
  }
}

}  // namespace
}  // namespace stoker::study
