// SPDX-License-Identifier: Apache-2.0
// Arguments of the command line: useful help, and refusals that name the key, the given value and the remedy before any
// file is read or created.
#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(Usage, HelpOfEveryCommandNamesItsArguments) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, Words>> expected = {
      {"train",
       {"[FLAGS] [DATA] [KEY=VALUE...]", "Flags:", "table", "text", "--config", "--quiet", "--json", "batch",
        "label_smoothing", "precision", "default:", "run", "plan"}},
      {"plan", {"[DATA]", "--json", "every value, its origin"}},
      {"tune", {"[DATA]", "--json", "batch=auto", "fit into memory"}},
      {"resume", {"[FLAGS] RUN [KEY=VALUE...]", "epochs=", "eval_every="}},
      {"generate", {"RUN", "--tokens INT=500"}},
      {"eval", {"RUN [DATA]", "--split", "--checkpoint", "--device", "--json"}},
      {"predict", {"RUN", "FILES", "--top", "--format", "--out"}},
      {"export", {"RUN", "FILE", "safetensors"}},
      {"report", {"RUN", "--out", "compare several runs"}},
      {"inspect", {"DATA", "--images", "--threads", "--html", "--json"}},
      {"memory", {"RUN", "--json"}},
      {"trace", {"FILE...", "--json", "--html", "--rows", "--step", "--compare", "--ranks"}},
      {"doctor", {"[PATH]", "--json", "--explain", "which may be training"}},
      {"profile", {"[RUN] [KEY=VALUE...]", "--steps", "--out", "--json", "a run that trains"}},
      {"info", {"WHAT", "tasks", "models", "machine"}}};
  std::vector<Words> commands = {{"--help"}, {"--version"}};
  for (const auto& [command, words] : expected) {
    commands.push_back({command, "--help"});
  }
  const std::vector<Finished> results = run_all(commands, folder.path());
  for (const Finished& each : results) {
    EXPECT_EQ(each.code, kDone) << each.err;
    EXPECT_THAT(each.err, IsEmpty());
  }
  EXPECT_THAT(results[0].out, AllOf(HasSubstr("Exit codes: 0 done, 2 usage, 65 data"), Not(HasSubstr("__complete"))));
  EXPECT_THAT(results[1].out, AllOf(StartsWith("stoker 0."), HasSubstr("torch 2.11.0")));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(results[0].out, HasSubstr(expected[i].first)) << "the first page";
    for (const std::string& word : expected[i].second) {
      EXPECT_THAT(results[i + 2].out, HasSubstr(word)) << expected[i].first;
    }
    EXPECT_THAT(results[i + 2].out, Not(HasSubstr("DATA TEXT"))) << "text is a kind of data";
    EXPECT_THAT(results[i + 2].out, Not(HasSubstr("\nOptions:"))) << "these are flags; options have no dashes";
    EXPECT_THAT(results[i + 2].out, Not(HasSubstr("Start with"))) << "this belongs to the first page only";
  }
}

struct Refusal {
  Words words;
  Words says;  // each must be on standard error
};

void expect_refusals(const std::vector<Refusal>& refusals, int code) {
  const TempFolder folder;
  write_striped_set(folder, "data/", 2);
  folder.write("wrong.toml", "epochs = 1\n[optimizer]\nmomentun = 0.9\n");
  folder.write("damaged.json", "{\"format\": 1, \"plan\": {\"epochs\"");
  folder.write("short.json", "{\"format\": 2, \"plan\": {}}");
  folder.write("old.json", "{\"format\": 1, \"plan\": {}}");
  std::vector<Words> commands;
  for (const Refusal& each : refusals) {
    commands.push_back(each.words);
  }
  const std::vector<Finished> results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    const std::string command = ::testing::PrintToString(refusals[i].words);
    EXPECT_EQ(results[i].code, code) << command << results[i].all();
    EXPECT_THAT(results[i].out, IsEmpty()) << command;
    EXPECT_LE(lines_of(results[i].err).size(), 3U) << command << results[i].err;
    for (const std::string& text : refusals[i].says) {
      EXPECT_THAT(results[i].err, HasSubstr(text)) << command;
    }
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

TEST(Usage, WrongCommandsAndFlagsAreRefused) {
  expect_refusals({{{"trian", "data"}, {"\"trian\"", "did you mean \"train\"", "stoker --help"}},
                   {{}, {"subcommand"}},
                   {{"eval"}, {"stoker: RUN is required"}},
                   {{"predict", "runs/x"}, {"FILES is required"}},
                   {{"train", "data", "--fast"}, {"--fast"}},
                   {{"train", "data", "--epochs", "3"}, {"--epochs", "options have no dashes; write epochs=3"}},
                   {{"train", "data", "--label-smoothing=0.1"}, {"write label_smoothing=0.1"}},
                   {{"train", "data", "--batch-size", "64"}, {"write batch=64"}},
                   {{"plan", "data", "--learning-rate=0.1"}, {"write lr=0.1"}},
                   {{"train", "data", "--run", "x"}, {"write run=x"}},
                   {{"train", "data", "--epohcs", "3"}, {"did you mean epochs=3?"}},
                   {{"inspect", "data", "--target", "pay"}, {"write target=pay"}},
                   {{"bench", "data", "nowhere", "--num-workers", "2"}, {"write threads=2"}},
                   {{"eval", "runs/x", "--split=tests"}, {"--split", "tests", "val"}},
                   {{"predict", "runs/x", "data", "--top", "0"}, {"--top"}},
                   {{"resume", "runs/nope"}, {"runs/nope: the run folder does not exist"}},
                   {{"train"}, {"no data", "stoker train DATA"}},
                   {{"completely-different"}, {"unknown command \"completely-different\"; `stoker"}}},
                  kUsage);
  expect_refusals({{{"eval", "runs/nope"}, {"runs/nope: the run or checkpoint folder does not exist"}},
                   {{"report", "runs/nope"}, {"runs/nope: the run folder does not exist"}},
                   {{"info", "nowhere"}, {"nowhere: does not exist"}}},
                  kDataError);
}

TEST(Usage, OnlyCommandsThatTakeOptionsSendToThem) {
  const TempFolder folder;
  const auto results = run_all({{"eval", "runs/x", "--batch", "3"},
                                {"train", "data", "--config", "x.toml", "--epochs", "3"},
                                {"resume", "runs/x", "--lr", "0.1"},
                                {"resume", "runs/x", "--epochs", "3"},
                                {"inspect", "t.csv", "--batch", "3"}},
                               folder.path());
  EXPECT_EQ(results[0].code, kUsage);
  EXPECT_THAT(results[0].err, AllOf(HasSubstr("--batch"), Not(HasSubstr("dashes"))));
  EXPECT_THAT(results[1].err, AllOf(HasSubstr("write epochs=3"), Not(HasSubstr("x.toml\n"))));
  EXPECT_THAT(results[2].err, AllOf(HasSubstr("--lr"), Not(HasSubstr("write lr")))) << "a resume cannot change it";
  EXPECT_THAT(results[3].err, HasSubstr("write epochs=3"));
  EXPECT_THAT(results[4].err, AllOf(HasSubstr("--batch"), Not(HasSubstr("write batch"))));
}

TEST(Usage, UnknownKeysComeWithTheNearestName) {
  expect_refusals(
      {{{"train", "data", "epohcs=3"}, {"\"epohcs\"", "did you mean \"epochs\""}},
       {{"train", "data", "leraning_rate=1"}, {"did you mean \"lr\"?"}},            // near another tool's name
       {{"train", "nowhere", "bacth=3"}, {"\"bacth\"", "did you mean \"batch\""}},  // before DATA is looked at
       {{"train", "data", "model=resnet19"}, {"\"resnet19\"", "did you mean \"resnet18\"", "cnn"}},
       {{"plan", "data", "optimizer=adamm"}, {"adamm", "did you mean optimizer=adam"}},
       {{"train", "data", "--config", "wrong.toml"}, {"wrong.toml, line 3", "did you mean \"optimizer.momentum\""}},
       {{"train", "data", "--config", "missing.toml"}, {"missing.toml", "No such file"}},
       {{"train", "data", "plan=damaged.json"}, {"damaged.json", "not a plan"}},
       {{"train", "data", "plan=short.json"}, {"short.json", "the plan lacks \"task\""}},
       {{"train", "data", "plan=old.json"}, {"old.json", "plan format 1", "Stoker 0.1 reads it"}},
       {{"train", "data", "plan=missing.json"}, {"missing.json", "No such file"}},
       {{"train", "data", "plan=short.json", "lr=1"}, {"remove lr="}}},
      kUsage);
}

TEST(Usage, BadValuesAreNamedWithWhatIsExpected) {
  expect_refusals({{{"train", "data", "epochs=0"}, {"epochs must be an integer from 1 to", "\"0\""}},
                   {{"train", "data", "epochs=nan"}, {"epochs must be", "\"nan\""}},
                   {{"train", "data", "steps=-1"}, {"steps must be", "\"-1\""}},
                   {{"train", "data", "batch=99999999999999999999"}, {"batch must be", "99999999999999999999"}},
                   {{"train", "data", "lr=nan"}, {"lr must be a number from", "\"nan\""}},
                   {{"train", "data", "lr=0"}, {"lr must be", "\"0\""}},
                   {{"train", "data", "val=1"}, {"val must be", "\"1\""}},
                   {{"train", "data", "time=-5m"}, {"time must be a time such as 90s, 15m or 2h", "\"-5m\""}},
                   {{"train", "data", "image_size=1000000"}, {"image_size must be", "\"1000000\""}},
                   {{"train", "data", "precision=fp8"}, {"precision must be one of fp32|bf16|fp16", "fp8"}},
                   {{"train", "data", "device=gpu"}, {"device must be", "\"gpu\""}},
                   {{"train", "data", "class_weights=1,nan"}, {"class_weights must be", "1,nan"}},
                   {{"train", "data", "epochs="}, {"epochs must be", "\"\""}},
                   {{"train", "data", "epochs"}, {"expected key=value", "\"epochs\""}},
                   {{"train", "data", "batch=100"}, {"batch 100 is larger than the 3 training samples", "set batch=3"}},
                   {{"train", "data", "lr=0.1", "lr=0.2"}, {"lr is given twice", "lr=0.1 and lr=0.2"}},
                   {{"resume", "data", "epochs=2", "epochs=3"}, {"epochs is given twice"}},
                   {{"train", "data", "data=other"}, {"data is given twice", "data=other and data=data"}},
                   {{"train", "data=data", "data=other"}, {"data is given twice"}},
                   {{"train", "data", "freeze=1"}, {"freeze=1", "set weights=FILE"}}},
                  kUsage);
}

TEST(Usage, CompletionOffersCommandsKeysAndValues) {
  const TempFolder folder;
  const auto results = run_all({{"__complete", "--", "tr"},
                                {"__complete", "--", "train", "data", "opt"},
                                {"__complete", "--", "train", "data", "schedule=co"},
                                {"__complete", "--", "plan", "data", "--co"},
                                {"__complete", "--", "plan", "data", "--q"},
                                {"__complete", "--", "resume", "runs/x", ""},
                                {"__complete", "--", "resume", "runs/x", "--"},
                                {"__complete", "--", "eval", "runs/x", "--s"},
                                {"__complete", "--", "predict", "runs/x", "--"},
                                {"__complete", "--", "export", "runs/x", "--"},
                                {"__complete", "--", "info", ""}},
                               folder.path());
  EXPECT_EQ(results[0].out, "train\ntrace\n");
  EXPECT_EQ(results[1].out,
            "optimizer=\noptimizer.momentum=\noptimizer.nesterov=\noptimizer.beta1=\noptimizer.beta2=\noptimizer.eps=\n"
            "optimizer_in_backward=\n");
  EXPECT_EQ(results[2].out, "schedule=constant\nschedule=cosine\n");
  EXPECT_EQ(results[3].out, "--config\n");
  EXPECT_THAT(results[4].out, IsEmpty());
  EXPECT_EQ(results[5].out,
            "epochs=\nsteps=\ntime=\nschedule_steps=\nearly_stop=\neval_every=\nsave_every=\nranks=\nrank_timeout="
            "\npipeline=\npipeline_cut=\nthreads=\n");
  EXPECT_THAT(lines_of(results[6].out), UnorderedElementsAre("--help", "--quiet", "--json"));
  EXPECT_EQ(results[7].out, "--split\n");
  EXPECT_THAT(lines_of(results[8].out), IsSupersetOf({"--top", "--format", "--out", "--checkpoint", "--device"}));
  EXPECT_THAT(lines_of(results[9].out), UnorderedElementsAre("--help", "--checkpoint"));
  EXPECT_THAT(results[10].out, IsEmpty()) << "bash completes files";
}

TEST(Usage, NoDriverIsLookedForWhereNoDeviceIsNeeded) {
  const TempFolder folder;
  const auto log_libraries = [] { return ::setenv("LD_DEBUG", "files", 1); };  // the loader names each library it tries
  const auto looks_for_driver = [&](const Words& words) {
    return run_stoker(words, folder.path(), log_libraries).err.find("libcuda.so") != std::string::npos;
  };
  for (const Words& words : std::vector<Words>{
           {"--help"}, {"--version"}, {"train", "--help"}, {"train", "x", "bacth=3"}, {"__complete", "--", "tr"}}) {
    EXPECT_FALSE(looks_for_driver(words)) << ::testing::PrintToString(words);
  }
  EXPECT_TRUE(looks_for_driver({"info", "machine"}));
}

TEST(Usage, AGpuThatIsNotThereIsADeviceError) {
  const TempFolder folder;
  write_striped_set(folder, "data/", 2);
  const Finished done = run_stoker({"train", "data", "device=cuda"}, folder.path());
  EXPECT_EQ(done.code, kDeviceError);
  EXPECT_THAT(done.err, HasSubstr("device=cpu"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

}  // namespace
}  // namespace stoker::testing
