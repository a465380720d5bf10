// SPDX-License-Identifier: Apache-2.0
// Requests from the command line and TOML: precedence, nesting, and errors that name the line.
#include "stoker/job/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/job/run_folder.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using ::testing::HasSubstr;

std::string refusal(const TempFolder& folder, const std::string& toml) {
  folder.write("config.toml", toml);
  try {
    (void)make_request(folder / "config.toml", {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Request, TheCommandLineBeatsTheFile) {
  const TempFolder folder;
  folder.write("config.toml",
               "data = \"images\"\nbatch = 32\nlr = 0.5\ntf32 = false\nclass_weights = [1, "
               "2.5]\n[optimizer]\nmomentum = 0.8\n");
  const Request request = make_request(folder / "config.toml", {"batch=64", "run=x"});
  EXPECT_EQ(request.data, "images");
  EXPECT_EQ(request.run, "x");
  EXPECT_EQ(request.options.find("batch")->value, "64");
  EXPECT_EQ(request.options.find("batch")->origin, core::Origin::kCommandLine);
  EXPECT_EQ(request.options.find("lr")->origin, core::Origin::kConfig);
  EXPECT_EQ(request.options.find("class_weights")->value, "1,2.5");
  EXPECT_EQ(request.options.find("optimizer.momentum")->value, "0.8");
  EXPECT_EQ(request.options.find("tf32")->value, "off");
}

TEST(Request, SurvivesItsFile) {
  const TempFolder folder;
  Request request = make_request({}, {"batch=64", "optimizer.momentum=0.8", "weights=it's \"odd\".safetensors"});
  request.data = "/data/with \"quotes\"";
  folder.write("config.toml", request_to_toml(request));
  const Request back = make_request(folder / "config.toml", {});
  EXPECT_EQ(back.data, request.data);
  ASSERT_EQ(back.options.all().size(), request.options.all().size());
  for (const auto& [key, asked] : request.options.all()) {
    EXPECT_EQ(back.options.find(key)->value, asked.value);
  }
}

TEST(Request, ATableMayNameItsOptimizer) {
  const TempFolder folder;
  folder.write("config.toml", "[optimizer]\nname = \"sgd\"\nmomentum = 0.8\n");
  const Request request = make_request(folder / "config.toml", {});
  EXPECT_EQ(request.options.find("optimizer")->value, "sgd");
  EXPECT_EQ(request.options.find("optimizer.momentum")->value, "0.8");
}

TEST(Request, PathsOfAnyBytesSurviveItsFile) {
  const TempFolder folder;
  Request request = make_request({}, {"weights=w \xff.safetensors", "test=t \xff.csv", "plan=/plans/\xfe.json"});
  request.data = "/data \xff\xfe";
  folder.write("config.toml", request_to_toml(request));
  const Request back = make_request(folder / "config.toml", {});
  EXPECT_EQ(back.data, request.data);
  EXPECT_EQ(back.plan_file, request.plan_file);
  EXPECT_EQ(back.options.find("weights")->value, "w \xff.safetensors");
  EXPECT_EQ(back.options.find("test")->value, "t \xff.csv");
  EXPECT_THAT(refusal(folder, "data = \"hex:6g\"\n"), HasSubstr("line 1"));
}

TEST(Request, NamesTheLineAndTheKey) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder, "lr = 0.1\nbacth = 3\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("did you mean \"batch\"")));
  EXPECT_THAT(refusal(folder, "lr = = 3\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal(folder, "lr = nan\n"), HasSubstr("lr must be"));
  EXPECT_THAT(refusal(folder, "epochs = 1979-05-27\n"), HasSubstr("epochs must be text, a number"));
  EXPECT_THROW((void)make_request(folder / "missing.toml", {}), ConfigError);
}

// Nested tables are parsed recursively: each level needs stack.
TEST(Request, DeepNestingIsRefused) {
  const TempFolder folder;
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) {
      all += text;
    }
    return all;
  };
  constexpr int kMany = 200'000;
  for (const std::string& toml :
       {"a" + repeated(".a", kMany) + " = 1", "a" + repeated(" . \"=\"", kMany) + " = 1",
        "[a" + repeated(".'#'", kMany) + "]", "x = \"\"\" \" \"\"\"\na" + repeated(".a", kMany) + " = 1",
        repeated("a = {a = ", kMany) + "1" + repeated("}", kMany)}) {
    EXPECT_THAT(refusal(folder, toml), HasSubstr("config.toml")) << toml.substr(0, 40);
  }
  EXPECT_THAT(refusal(folder, "[optimizer.more]\nlr = 1\n"), HasSubstr("optimizer.more"));
  const std::string dots(200, '.');
  folder.write("config.toml", "class_weights = [" + repeated("0.5, ", 1000) + "1.0] # " + dots + "\nweights = \"" +
                                  dots + "\"\nsample_prompt = '''\n" + dots + "'''\n");
  EXPECT_EQ(make_request(folder / "config.toml", {}).options.find("weights")->value, dots);
}

// So that a plan can be repeated, and a run resumed, from any folder.
TEST(Request, FilesAreNamedByWholePaths) {
  const TempFolder folder;
  folder.write("data/table.csv", "");
  folder.write("data/rows.csv", "");
  folder.write("data/shared.json", "");
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto whole = [&](const std::string& key, const std::string& value) {
    Request request = make_request({}, {key + "=" + value});
    request.data = "data/table.csv";
    return with_whole_paths(std::move(request)).options.find(key)->value;
  };
  EXPECT_EQ(whole("test", "data/rows.csv"), (folder / "data/rows.csv").native());
  EXPECT_EQ(whole("test", "rows.csv"), (folder / "data/rows.csv").native()) << "next to the data";
  EXPECT_EQ(whole("test", "gone.csv"), (folder / "gone.csv").native());
  EXPECT_EQ(whole("test", "/gone.csv"), "/gone.csv");
  EXPECT_EQ(whole("tokenizer", "data/shared.json"), (folder / "data/shared.json").native());
  EXPECT_EQ(whole("weights", "data/shared.json"), (folder / "data/shared.json").native());
  folder.write("bytes", "a file with the name of a tokenizer");
  EXPECT_EQ(whole("tokenizer", "bytes"), "bytes");
  EXPECT_EQ(whole("tokenizer", "./bytes"), (folder / "bytes").native());
  std::filesystem::current_path(here);
}

TEST(RunFolder, NamesCountUpAndPathsAreTakenAsTheyAre) {
  const TempFolder folder;
  EXPECT_EQ(RunFolder::create("x", folder / "runs").path(), folder / "runs/x");
  EXPECT_EQ(RunFolder::create("x", folder / "runs").path(), folder / "runs/x-2");
  EXPECT_EQ(RunFolder::create("x", folder / "runs").path(), folder / "runs/x-3");
  const std::string path = (folder / "there/run").native();
  EXPECT_EQ(RunFolder::create(path).path(), path);
  folder.write("there/run/file", "");
  EXPECT_THROW((void)RunFolder::create(path), ConfigError);
  EXPECT_THROW((void)RunFolder::create(""), ConfigError);
  EXPECT_THROW((void)RunFolder::open(folder.path()), ConfigError);
  EXPECT_THROW((void)RunFolder::create("/proc/nowhere/run"), IoError);
}

}  // namespace
}  // namespace stoker::job
