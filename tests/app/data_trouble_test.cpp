// SPDX-License-Identifier: Apache-2.0
// Data folders as users have them. Data that cannot be trained on is refused by name with exit code 65. Data that is
// merely odd is reported and used.
#include "app/trained_run.h"
#include "app/without_root.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string source_image(const std::string& name) {
  const std::string bytes = read_bytes(source_folder() / "tests/data/broken-images" / name);
  if (bytes.empty()) {
    throw std::runtime_error("no test image " + name);
  }
  return bytes;
}

TEST(DataTrouble, FoldersThatCannotBeTrainedOnAreRefusedByName) {
  const TempFolder folder;
  fs::create_directory(folder / "empty");
  write_striped_set(folder, "one/", 2, 0, 1);
  fs::rename(folder / "one/across/0.png", folder / "one/across/0.PNG");
  folder.write("words/a/x.md", "text");
  folder.write("words/b/y.md", "text");
  folder.write("text.tar", "this is not a tar file");
  write_striped_set(folder, "extra/train/", 2, 0, 2);
  write_striped_set(folder, "extra/val/", 2, 50, 3);  // "plain" is not in train
  write_striped_set(folder, "missing/", 2);
  folder.write("missing/labels.csv", "filename,label\nacross/0.png,x\ngone.png,y\n");
  write_striped_set(folder, "column/", 2);
  folder.write("column/labels.csv", "filename,label,colour\nacross/0.png,x,red\n");
  const std::vector<std::pair<std::string, Words>> cases = {
      {"empty", {"empty: no labelled training images"}},
      {"one", {"only one class, \"across\"", "at least two"}},
      {"words", {"no labelled training images"}},
      {"nowhere", {"nowhere: does not exist"}},
      {"text.tar", {"text.tar"}},
      {"one/across/0.PNG", {"one/across/0.PNG: is a single image", "one folder of images per class"}},
      {"extra", {"class \"plain\" of the val split does not occur in train"}},
      {"missing", {"labels.csv, line 3: \"gone.png\" is not one of the 6 images"}},
      {"column", {"labels.csv, line 1: unknown column \"colour\"", "filename, label and optionally split"}}};
  std::vector<Words> commands;
  for (const auto& [data, says] : cases) {
    commands.push_back(Words{"train", data} + kQuick);
  }
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(results[i].code, kDataError) << cases[i].first << results[i].all();
    for (const std::string& text : cases[i].second) {
      EXPECT_THAT(results[i].err, HasSubstr(text)) << cases[i].first;
    }
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

TEST(DataTrouble, DataOfAnotherTaskIsRefusedUnlessClassesAreAskedFor) {
  const TempFolder folder;
  for (int i = 0; i < 12; ++i) {
    folder.write("cells/images/" + std::to_string(i) + ".png", small_png(i, 16, 16));
    augment::Image mask;
    mask.reshape(16, 16, 1);
    std::fill_n(mask.pixels.data(), 16 * (i + 1), std::uint8_t{255});
    folder.write("cells/masks/" + std::to_string(i) + ".png", png_of(mask));
  }
  folder.write("songs/blues/1.wav", "RIFF");
  const auto refused = run_all(
      {Words{"train", "cells"} + kQuick, {"plan", "cells"}, {"info", "cells"}, Words{"train", "songs"} + kQuick},
      folder.path());
  for (const Finished& each : refused) {
    EXPECT_EQ(each.code, kDataError) << each.all();
    EXPECT_THAT(each.err, AllOf(HasSubstr("looks like data for"), HasSubstr("set task=image_classification")));
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
  const Words forced = Words{"train", "cells", "task=image_classification", "run=forced"} + kQuick;
  const Finished trained = run_stoker(forced, folder.path());
  EXPECT_EQ(trained.code, 0) << trained.all();
  EXPECT_THAT(trained.all(), HasSubstr("its folders are used as classes as requested"));
  for (const Words& after : {Words{"eval", "runs/forced"}, Words{"resume", "runs/forced", "epochs=2"}}) {
    const Finished result = run_stoker(after, folder.path());
    EXPECT_EQ(result.code, 0) << result.all();
  }
}

TEST(DataTrouble, WhatMayNotBeReadIsNamed) {
  const TempFolder folder;
  write_striped_set(folder, "class/", 2);
  fs::permissions(folder / "class/down", fs::perms::none);
  write_striped_set(folder, "file/", 2);
  fs::permissions(folder / "file/down/1.png", fs::perms::none);
  const Finished of_class = run_stoker(Words{"train", "class"} + kQuick, folder.path(), without_root_rights);
  EXPECT_EQ(of_class.code, kDataError) << of_class.all();
  EXPECT_THAT(of_class.err,
              AllOf(HasSubstr("class/down: folder cannot be read: Permission denied"), HasSubstr("check the path")));
  const Finished of_file = run_stoker(Words{"train", "file"} + kQuick, folder.path(), without_root_rights);
  EXPECT_EQ(of_file.code, kDataError) << of_file.all();
  EXPECT_THAT(of_file.err, AllOf(HasSubstr("down/1.png"), HasSubstr("Permission denied")));
  fs::permissions(folder / "class/down", fs::perms::owner_all);  // otherwise only root could remove it
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

TEST(DataTrouble, LoopsPipesAndOtherFilesArePassedOverAloud) {
  const TempFolder folder;
  write_striped_set(folder, "train/", 4);
  write_striped_set(folder, "val/", 2, 50);
  fs::copy_file(folder / "train/down/0.png", folder / "val/down/copy.png");
  fs::create_directory_symlink(folder.path(), folder / "train/down/loop");
  fs::create_symlink("nowhere.png", folder / "train/down/gone.png");
  ASSERT_EQ(::mkfifo((folder / "train/across/pipe.png").c_str(), 0666), 0);
  folder.write("train/across/notes.txt", "text");
  const Finished done =
      run_stoker(Words{"train", folder.path(), "run=" + (folder / "run").native()} + kQuick, folder.path());
  EXPECT_EQ(done.code, kDone) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("train 12, val 7, test 0"), HasSubstr("note: special files"),
                              HasSubstr("links to a parent folder"), HasSubstr("broken links ignored: 1,"),
                              HasSubstr("files that are not images ignored: 1,"), HasSubstr("train/across/notes.txt")));
  // The same image in train and in val.
  EXPECT_THAT(done.out, HasSubstr("1 of the 7 images of val are also in train, byte for byte"));
}

TEST(DataTrouble, AnImageThatCannotBeDecodedIsNamedAndReplacedOrStopsTheRun) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"words.jpg", source_image("made_here/text_named.jpg")},
      {"cut.jpg", source_image("made_here/hopper_cut_300.jpg")},
      {"cut.png", small_png(1).substr(0, 60)},
      {"zero.png", ""}};
  std::vector<Words> commands;
  for (const auto& [name, bytes] : bad) {
    write_striped_set(folder, name + "-data/train/", 4);
    write_striped_set(folder, name + "-data/val/", 1, 50);
    folder.write(name + "-data/train/down/" + name, bytes);
    const std::string run = "run=" + (folder / ("run-" + name)).native();
    commands.push_back(Words{"train", name + "-data", run} + kQuick);
    commands.push_back(Words{"train", name + "-data", run + "-raise", "on_bad=raise"} + kQuick);
  }
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const std::string named = "train/down/" + bad[i].first;
    EXPECT_EQ(results[2 * i].code, 0) << bad[i].first << results[2 * i].all();
    EXPECT_THAT(results[2 * i].out, HasSubstr(named));
    EXPECT_THAT(results[2 * i].out, HasSubstr("; replaced by "));
    EXPECT_THAT(read_text(folder / ("run-" + bad[i].first) / "quarantine.csv"), HasSubstr(named));
    EXPECT_EQ(results[2 * i + 1].code, kDataError) << bad[i].first << results[2 * i + 1].all();
    EXPECT_THAT(results[2 * i + 1].err, HasSubstr(named));
  }
}

TEST(DataTrouble, ADecodersWarningCountsAsStrictSays) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 4);
  write_striped_set(folder, "data/val/", 1, 50);
  folder.write("data/train/down/cut.jpg", source_image("made_here/hopper_cut_3000.jpg"));
  const auto results =
      run_all({Words{"train", "data", "run=" + (folder / "strict").native()} + kQuick,
               Words{"train", "data", "run=" + (folder / "lenient").native(), "strict=false"} + kQuick},
              folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].all();
  EXPECT_THAT(read_text(folder / "strict/quarantine.csv"),
              AllOf(HasSubstr("train/down/cut.jpg"), HasSubstr("; this is only a warning, which strict=off accepts")));
  EXPECT_EQ(results[1].code, kDone) << results[1].all();
  EXPECT_FALSE(fs::exists(folder / "lenient/quarantine.csv"));
}

TEST(DataTrouble, UnusualImagesTrainAndPredict) {
  const TempFolder folder;
  int count = 0;
  // CMYK, grey, 16 bits, palette, alpha, interlaced, rotated, WebP, .npy
  for (const char* kind : {"broken-images/valid_but_unusual", "broken-images/exif", "formats"}) {
    for (const auto& entry : fs::directory_iterator(source_folder() / "tests/data" / kind)) {
      const char* side = count++ % 2 == 0 ? "left" : "right";
      fs::create_directories(folder / ("data/" + std::string(side)));
      fs::copy_file(entry.path(), folder / ("data/" + std::string(side)) / entry.path().filename());
    }
  }
  ASSERT_GE(count, 43);
  const Finished trained = run_stoker(Words{"train", "data", "run=odd", "image_size=16"} + kQuick, folder.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const Finished predicted = run_stoker({"predict", "runs/odd", "data", "--top", "1"}, folder.path());
  EXPECT_EQ(predicted.code, kDone) << predicted.err;
  EXPECT_EQ(lines_of(predicted.out).size(), static_cast<std::size_t>(count) + 1);
}

TEST(DataTrouble, NamesMayHoldBlanksUtf8AndAnyOtherByte) {
  const TempFolder folder;
  const Words classes = {"with blank, and comma", "überblick \xe2\x98\x83", "bytes \xff\xfe"};
  for (const char* split : {"train/", "val/"}) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      for (int i = 0; i < 3; ++i) {  // the same file names in every class
        folder.write("data set/" + std::string(split) + classes[c] + "/\xc3\xbc \xff " + std::to_string(i) + ".png",
                     small_png(static_cast<int>(c) * 20 + i + (split[0] == 'v' ? 10 : 0)));
      }
    }
  }
  const std::string run = folder / "run \xff";
  const Finished trained = run_stoker(Words{"train", "data set", "--json", "run=" + run} + kQuick, folder.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  for (const std::string& line : lines_of(trained.out)) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  const auto results = run_all({{"eval", run, "--split", "val", "--json"},
                                {"predict", run, "data set/val", "--top", "3"},
                                {"predict", run, "data set/val", "--top", "3", "--format", "json"},
                                {"info", run},
                                {"resume", run, "epochs=2", "--quiet"}},
                               folder.path());
  for (const Finished& each : results) {
    EXPECT_EQ(each.code, kDone) << each.err;
  }
  const auto report = nlohmann::json::parse(results[0].out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << results[0].out;
  EXPECT_EQ(report.at("samples"), 9);
  std::vector<std::string> names;
  for (const auto& each : report.at("classes")) {
    names.push_back(each.at("name"));
  }
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("with blank, and comma", "überblick \xe2\x98\x83", "bytes \\xff\\xfe"));
  const Words csv = lines_of(results[1].out);
  EXPECT_EQ(csv.size(), 9U * 3 + 1);
  EXPECT_THAT(results[1].out, AllOf(HasSubstr("bytes \\xff\\xfe"), HasSubstr("\"with blank, and comma\"")));
  for (const std::string& line : lines_of(results[2].out)) {
    const auto prediction = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(prediction.is_object()) << line;
    EXPECT_EQ(prediction.at("guesses").size(), 3U);
  }
  EXPECT_THAT(results[3].out, HasSubstr("3 classes: "));
}

TEST(DataTrouble, TheDataFolderItselfAndItsWeightsMayHaveAnyName) {
  const TempFolder folder;
  write_striped_set(folder, "data \xff/train/", 4);
  write_striped_set(folder, "data \xff/val/", 2, 50);
  const std::string weights = "weights \xfe.safetensors";
  ASSERT_EQ(run_stoker({"export", trained_run().run(), weights}, folder.path()).code, kDone);
  const Finished trained =
      run_stoker(Words{"train", "data \xff", "run=odd", "weights=" + weights} + kQuick, folder.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const auto results = run_all({{"eval", "runs/odd", "--split", "val"},
                                {"resume", "runs/odd", "epochs=2", "--quiet"},
                                {"train", "data \xff", "plan=runs/odd/plan.json", "run=again", "--quiet"},
                                {"info", "runs/odd"}},
                               folder.path());
  for (const Finished& each : results) {
    EXPECT_EQ(each.code, kDone) << each.err;
  }
  EXPECT_THAT(read_bytes(folder / "runs/again/config.toml"), HasSubstr("plan = "));
}

TEST(DataTrouble, ATableWithAMarkAndCarriageReturnsWorks) {
  const TempFolder folder;
  std::string table =
      "\xef\xbb\xbf"
      "filename,label,split\r\n";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "image " + std::to_string(i) + ".png";
    folder.write("data/" + name, small_png(i));
    table += "\"" + name + "\"," + (i % 2 == 0 ? "cat" : "dog") + "," + (i < 6 ? "training" : "valid") + "\r\n";
  }
  folder.write("data/labels.csv", table);
  const Finished done = run_stoker(Words{"train", "data", "run=table"} + kQuick + Words{"batch=2"}, folder.path());
  EXPECT_EQ(done.code, kDone) << done.all();
  EXPECT_THAT(done.out, HasSubstr("labels.csv, 2 classes; train 6, val 2, test 0"));
}

}  // namespace
}  // namespace stoker::testing
