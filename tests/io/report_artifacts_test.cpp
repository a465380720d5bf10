// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/report/artifacts.h"
#include "stoker/io/report/report.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using testing::TempFolder;

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

Json gallery(int count) {
  Json items = Json::array();
  for (int i = 0; i < count; ++i) {
    items.push_back({{"image", fmt::format("{}.png", i)}, {"caption", fmt::format("c{}", i)}, {"good", i % 2 == 0}});
  }
  return {{"kind", "gallery"}, {"title", "g"}, {"items", items}};
}

struct Shown {
  Json things;
  std::vector<std::string> unread;
};

Shown show(const fs::path& folder) {
  Shown shown;
  shown.things = read_artifacts(folder, shown.unread);
  return shown;
}

TEST(Artifacts, ImagesAreInlined) {
  const TempFolder folder;
  write_file_atomically(folder.path() / "0.png", std::string(kPng) + "ab");
  write_file_atomically(folder.path() / "1.png", "\xFF\xD8\xFF\xE0");
  write_file_atomically(folder.path() / "g.json", gallery(2).dump());
  const Shown shown = show(folder.path());
  ASSERT_EQ(shown.things.size(), 1U);
  const Json& items = shown.things[0]["items"];
  EXPECT_EQ(items[0]["image"], "data:image/png;base64,iVBORw0KGgphYg==");  // computed with coreutils' base64
  EXPECT_EQ(items[1]["image"], "data:image/jpeg;base64,/9j/4A==");
  EXPECT_EQ(items[0]["good"], true);
  EXPECT_FALSE(shown.things[0].contains("left_out"));
}

TEST(Artifacts, OnlyImagesOfTheFolderAreInlined) {
  const TempFolder folder;
  fs::create_directory(folder.path() / "artifacts");
  write_file_atomically(folder.path() / "0.png", kPng);
  write_file_atomically(folder.path() / "artifacts" / "text.png", "secret");
  Json thing = gallery(1);
  for (const char* name : {"../0.png", "/etc/hostname", "text.png", "missing.png", "..", ""}) {
    thing["items"][0]["image"] = name;
    write_file_atomically(folder.path() / "artifacts" / "g.json", thing.dump());
    const Shown shown = show(folder.path() / "artifacts");
    EXPECT_TRUE(shown.things[0]["items"].empty()) << name;
    EXPECT_THAT(shown.things[0]["left_out"].get<std::string>(), HasSubstr("0 of 1 images"));
  }
}

TEST(Artifacts, ImagesBeyondTheBudgetAreCounted) {
  const TempFolder folder;
  for (int i = 0; i < 50; ++i) {
    write_file_atomically(folder.path() / fmt::format("{}.png", i), std::string(kPng).append(30'000, 'x'));
  }
  write_file_atomically(folder.path() / "g.json", gallery(50).dump());
  const Json thing = show(folder.path()).things[0];
  EXPECT_EQ(thing["items"].size(), 22U);  // 900,000 / 40,012
  EXPECT_THAT(thing["left_out"].get<std::string>(), HasSubstr("22 of 50 images"));
}

TEST(Artifacts, MatrixBecomesItsCellsThatAreNotZero) {
  const TempFolder folder;
  write_file_atomically(folder.path() / "m.json",
                        R"({"kind":"matrix","labels":["a","b"],"values":[[5,0],[0.5,7,9],[1,1]]})");
  const Json thing = show(folder.path()).things[0];
  EXPECT_EQ(thing["cells"], Json::parse("[[1,1,7],[0,0,5],[1,0,0.5]]"));
  EXPECT_FALSE(thing.contains("values"));
}

TEST(Artifacts, OfMoreSamplesThanFitTheNewestAreShown) {
  const TempFolder folder;
  for (int i = 0; i < 5; ++i) {
    folder.write(fmt::format("sample-{}.json", i),
                 Json({{"kind", "text"}, {"text", std::string(200'000, 'x')}}).dump());
  }
  const Shown shown = show(folder.path());
  ASSERT_EQ(shown.things.size(), 2U);
  EXPECT_EQ(shown.things[0]["file"], "artifacts/sample-4.json");
  EXPECT_EQ(shown.things[1]["file"], "artifacts/sample-3.json");
  EXPECT_EQ(shown.unread.size(), 3U);
}

TEST(Artifacts, NamesWhatIsNotAnArtifact) {
  const TempFolder folder;
  for (const char* text :
       {"", "[]", "{}", R"({"kind":"video"})", R"({"kind":"table"})", R"({"kind":"table","columns":[],"rows":[null]})",
        R"({"kind":"matrix","labels":3})", R"({"kind":"text","text":3})", R"({"kind":"gallery","items":{}})",
        R"({"kind":5})", "{\"kind\""}) {
    write_file_atomically(folder.path() / "a.json", text);
    const Shown shown = show(folder.path());
    EXPECT_TRUE(shown.things.empty()) << text;
    ASSERT_EQ(shown.unread.size(), 1U) << text;
    EXPECT_THAT(shown.unread[0], HasSubstr("a.json"));
  }
  EXPECT_TRUE(show(folder.path() / "missing").things.empty());
}

// Everything too large at once.
TEST(Artifacts, APageStaysUnderThreeMegabytes) {
  const TempFolder folder;
  write_file_atomically(folder.path() / "plan.json", "{}");
  std::string csv = "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value";
  for (int i = 0; i < 100; ++i) {
    csv += fmt::format(",scalar_{}", i);
  }
  std::string values;
  for (int i = 0; i < 100; ++i) {
    values += fmt::format(",{}", 0.123456789 * (i + 1));
  }
  for (int step = 1; step <= 5000; ++step) {
    csv += fmt::format("\nstep,0,{},32,0.0{},0.00{},0.01,{},,,{}", step, step, step, 123456789 + step, values);
  }
  for (int i = 0; i < 3000; ++i) {
    csv += fmt::format("\neval,0,{},,1,,,,val,metric_{},{}{}", 5000 + i, i % 300, 1.0 / (i + 1), std::string(100, ','));
  }
  write_file_atomically(folder.path() / "metrics.csv", csv + "\n");
  fs::create_directory(folder.path() / "artifacts");
  const fs::path artifacts = folder.path() / "artifacts";
  for (int i = 0; i < 60; ++i) {
    write_file_atomically(artifacts / fmt::format("{}.png", i), std::string(kPng).append(50'000, 'x'));
  }
  write_file_atomically(artifacts / "g.json", gallery(60).dump());
  Json matrix{{"kind", "matrix"}, {"labels", Json::array()}, {"values", Json::array()}};
  for (int i = 0; i < 400; ++i) {
    matrix["labels"].push_back(fmt::format("class {}", i));
    matrix["values"].push_back(std::vector<int>(400, 1000 + i));
  }
  write_file_atomically(artifacts / "m.json", matrix.dump());
  for (int i = 0; i < 5; ++i) {
    write_file_atomically(artifacts / fmt::format("t{}.json", i),
                          Json({{"kind", "text"}, {"text", std::string(200'000, '<')}}).dump());
  }
  const std::string page = report_page({folder.path()});
  EXPECT_LT(page.size(), 3'000'000U);
  EXPECT_GT(page.size(), 1'000'000U);
  EXPECT_THAT(page, HasSubstr("the page has only room for"));
  EXPECT_THAT(page, HasSubstr("the 20000 largest of 160000 cells are shown"));
}

}  // namespace
}  // namespace stoker::io
