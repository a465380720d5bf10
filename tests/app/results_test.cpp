// SPDX-License-Identifier: Apache-2.0
// Commands on a finished run: eval, predict, export, info, and weights= that fit fully, in part, or not at all.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Tensors of a safetensors file by name: dtype, shape and bytes (a simple, independent reader).
std::map<std::string, std::string> tensors_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  std::map<std::string, std::string> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
      tensors[name] =
          entry.at("dtype").dump() + entry.at("shape").dump() + file.substr(8 + length + begin, end - begin);
    }
  }
  return tensors;
}

TEST(Results, EvalReportsASplitAndEveryClass) {
  const TrainedRun& base = trained_run();
  const auto results = run_all({{"eval", "runs/base"},
                                {"eval", "runs/base", "--json", "--split", "val", "--checkpoint", "last"},
                                {"eval", "runs/base/checkpoints/best", "data/train", "--split", "all", "--json"},
                                {"eval", "data"}},
                               base.folder());
  EXPECT_EQ(results[0].code, kDone) << results[0].err;
  EXPECT_THAT(results[0].out, AllOf(StartsWith("test split, 9 samples"), HasSubstr("accuracy"), HasSubstr("across"),
                                    HasSubstr("down"), HasSubstr("plain"), HasSubstr("recall")));
  const auto val = nlohmann::json::parse(results[1].out, nullptr, false);
  ASSERT_TRUE(val.is_object()) << results[1].all();
  EXPECT_EQ(val.at("samples"), 9);
  EXPECT_EQ(val.at("classes").size(), 3U);
  // The accuracy of training's last validation, on the same split.
  EXPECT_THAT(base.trained().out,
              HasSubstr("epoch 1: val accuracy " +
                        std::to_string(val.at("metrics").at("accuracy").get<double>()).substr(0, 5)));
  const auto all = nlohmann::json::parse(results[2].out, nullptr, false);
  ASSERT_TRUE(all.is_object()) << results[2].all();
  EXPECT_EQ(all.at("samples"), 24);
  EXPECT_EQ(results[3].code, kDataError);
  EXPECT_THAT(results[3].err, HasSubstr("data: has no checkpoint"));
}

TEST(Results, RunsGivenAsDataAreToldFromIt) {
  const TrainedRun& base = trained_run();
  const auto results =
      run_all({{"train", "runs/base"}, {"plan", "runs/base"}, {"train", "runs"}, {"info", "runs"}}, base.folder());
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(results[i].code, kDataError) << results[i].all();
    EXPECT_THAT(results[i].err, AllOf(HasSubstr("runs/base: is a run folder, not data"), HasSubstr("stoker resume")));
  }
  EXPECT_EQ(results[2].code, kDataError) << results[2].all();
  EXPECT_THAT(results[2].err, AllOf(HasSubstr("runs: is a folder of runs"), HasSubstr("stoker info runs")));
  EXPECT_EQ(results[3].code, kDone) << results[3].all();
  EXPECT_THAT(results[3].out, HasSubstr("runs/base: mlp at step 3 (epoch 1)"));
}

TEST(Results, EvalFindsTheRunOfACheckpointHoweverItIsNamed) {
  const TrainedRun& base = trained_run();
  const auto results = run_all({{"eval", "runs/base/checkpoints/best/"},
                                {"eval", "runs/base/checkpoints/../checkpoints/last"},
                                {"eval", "runs/base/", "--split", "all"}},
                               base.folder());
  EXPECT_THAT(results[0].all(), StartsWith("test split, 9 samples"));
  EXPECT_THAT(results[1].all(), StartsWith("test split, 9 samples"));
  EXPECT_THAT(results[2].all(), StartsWith("all splits, 42 samples"));
  const Finished inside = run_stoker({"eval", "best"}, base.run() / "checkpoints");
  EXPECT_THAT(inside.all(), StartsWith("test split, 9 samples"));
}

TEST(Results, PredictSearchesFoldersAsTrainingDoes) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  folder.write("in/one.png", small_png(1));
  folder.write("in/deep/two.JPE", small_png(2));  // the first bytes tell the format
  folder.write("in/.hidden.png", "no image");
  folder.write("in/.cache/three.png", small_png(3));
  folder.write("in/notes.txt", "text");
  const Finished done = run_stoker({"predict", base.run(), "in", "--top", "1"}, folder.path());
  EXPECT_EQ(done.code, kDone) << done.err;
  EXPECT_EQ(lines_of(done.out).size(), 3U) << done.out;
  EXPECT_THAT(done.err, AllOf(HasSubstr("hidden files or folders"), HasSubstr("notes.txt")));
}

TEST(Results, PredictionsOfGoodFilesComeInSpiteOfBadOnes) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  folder.write("in/bad.png", "no image");
  folder.write("in/good.png", small_png(3));
  const std::string run = base.run();
  const auto results = run_all({{"predict", run, "in"},
                                {"predict", run, "in/bad.png", "in/good.png", "--format", "json", "--top", "2"},
                                {"predict", run, base.data() / "test/down", "--out", "out.csv", "--top", "1"},
                                {"predict", run, "in/gone.png", "--out", "none.csv"}},
                               folder.path());
  EXPECT_EQ(results[0].code, kDataError);
  EXPECT_THAT(results[0].err, HasSubstr("in/bad.png"));
  const Words csv = lines_of(results[0].out);
  ASSERT_EQ(csv.size(), 4U) << results[0].out;
  EXPECT_EQ(csv[0], "file,rank,label,probability");
  EXPECT_THAT(csv[1], StartsWith("in/good.png,1,"));
  EXPECT_EQ(results[1].code, kDataError);
  const Words json = lines_of(results[1].out);
  ASSERT_EQ(json.size(), 2U) << results[1].out;
  EXPECT_THAT(nlohmann::json::parse(json[0]).at("error").get<std::string>(), HasSubstr("bad.png"));
  const auto guesses = nlohmann::json::parse(json[1]).at("guesses");
  ASSERT_EQ(guesses.size(), 2U);
  EXPECT_GE(guesses[0].at("probability"), guesses[1].at("probability"));
  EXPECT_EQ(results[2].code, kDone) << results[2].err;
  EXPECT_THAT(results[2].out, IsEmpty());
  EXPECT_EQ(lines_of(read_bytes(folder / "out.csv")).size(), 4U);
  EXPECT_EQ(results[3].code, kDataError);
  EXPECT_THAT(results[3].err, HasSubstr("in/gone.png: does not exist"));
  EXPECT_FALSE(fs::exists(folder / "none.csv"));
}

TEST(Results, AnswersBeforeAnErrorAreKept) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  folder.write("in/a.png", small_png(3));
  folder.write("in/b.png", "no image");
  const Finished done = run_stoker({"predict", base.run(), "in", "--out", "out.csv", "--top", "1"}, folder.path(), [] {
    const int full = ::open("/dev/full", O_WRONLY);  // the message about b.png cannot be written: that is the error
    return full < 0 || ::dup2(full, STDERR_FILENO) < 0 ? 92 : 0;
  });
  EXPECT_EQ(done.code, 1) << done.all();
  const Words lines = lines_of(read_bytes(folder / "out.csv"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], StartsWith("in/a.png,1,"));
}

TEST(Results, AnOutThatCannotBeWrittenIsRefusedFirst) {
  const TempFolder folder;
  const Finished done = run_stoker({"predict", "runs/none", "none.png", "--out", "missing/out.csv"}, folder.path());
  EXPECT_EQ(done.code, kIoError) << done.all();
  EXPECT_THAT(done.err, HasSubstr("missing/out.csv cannot be written: folder missing does not exist"));
}

TEST(Results, ExportedWeightsAreTheCheckpoints) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  const auto results = run_all({{"export", base.run(), "w.safetensors", "--checkpoint", "last"},
                                {"export", base.run(), "missing/w.safetensors"},
                                {"export", folder.path(), "w2.safetensors"}},
                               folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].err;
  const std::string file = read_bytes(folder / "w.safetensors");
  ASSERT_GT(file.size(), 8U);
  EXPECT_EQ(tensors_of(file), tensors_of(weights_of(base.run())));
  EXPECT_THAT(file, AllOf(HasSubstr("stoker.classes"), HasSubstr("across")));
  EXPECT_EQ(results[1].code, kIoError) << results[1].all();
  EXPECT_THAT(results[1].err, HasSubstr("missing/w.safetensors"));
  EXPECT_EQ(results[2].code, kDataError) << results[2].all();
}

TEST(Results, PythonLoadsWhatIsExported) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  if (std::system("python3 -c 'import safetensors.numpy' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3 has no safetensors here";
  }
  ASSERT_EQ(run_stoker({"export", base.run(), "w.safetensors"}, folder.path()).code, kDone);
  folder.write("load.py",
               "import safetensors.numpy, sys\nt = safetensors.numpy.load_file(sys.argv[1])\n"
               "sys.exit(0 if t and all(v.size for v in t.values()) else 1)\n");
  EXPECT_EQ(
      std::system(
          ("python3 '" + (folder / "load.py").native() + "' '" + (folder / "w.safetensors").native() + "'").c_str()),
      0);
}

TEST(Results, InfoSaysWhatThingsHold) {
  const TrainedRun& base = trained_run();
  const auto results = run_all({{"info", "runs/base"},
                                {"info", "runs/base/checkpoints/best"},
                                {"info", "runs/base/checkpoints/last/weights.safetensors"},
                                {"info", "data"},
                                {"info", "models"},
                                {"info", "machine"},
                                {"info", "data/train/down/0.png"}},
                               base.folder());
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(results[i].code, kDone) << i << results[i].all();
  }
  EXPECT_THAT(results[0].out,
              AllOf(HasSubstr("mlp at step 3"), HasSubstr("3 classes: across, down, plain"), HasSubstr("batch")));
  EXPECT_THAT(results[1].out, AllOf(HasSubstr("checkpoint runs/base/checkpoints/best"), HasSubstr("12 x 12 pixels")));
  EXPECT_THAT(results[2].out, AllOf(HasSubstr("safetensors"), HasSubstr("F32"), HasSubstr("[256, 432]")));
  EXPECT_THAT(results[3].out,
              AllOf(HasSubstr("train 24, val 9, test 9"), HasSubstr("12 x 12 pixels (median), colour")));
  EXPECT_THAT(results[4].out, AllOf(HasSubstr("cnn"), HasSubstr("resnet50")));
  EXPECT_THAT(results[5].out, AllOf(HasSubstr("torch 2.11"), HasSubstr("cores"), HasSubstr("device ")));
  EXPECT_EQ(results[6].code, kDataError);
  EXPECT_THAT(results[6].err, HasSubstr("is not a run, checkpoint, .safetensors file, table, .tar or data folder"));
}

TEST(Results, WeightsThatDoNotFitAreRefusedByNameAndThoseThatDoInPartSaySo) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  write_striped_set(folder, "two/train/", 4, 0, 2);
  write_striped_set(folder, "two/val/", 2, 50, 2);
  folder.write("words.safetensors", "these are words, no weights");
  folder.write("foreign.safetensors", read_bytes(source_folder() / "tests/data/safetensors/golden.safetensors"));
  fs::create_directory(folder / "empty");
  const auto train = [](const std::string& weights, const std::string& run) {
    return Words{"train", "two", "weights=" + weights, "run=" + run} + kQuick;
  };
  const auto refused = run_all({train("gone.safetensors", "a"), train("words.safetensors", "b"),
                                train("foreign.safetensors", "c"), train("empty", "d")},
                               folder.path());
  const Words named = {"gone.safetensors", "words.safetensors", "foreign.safetensors", "empty"};
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(refused[i].code, kDataError) << named[i] << refused[i].all();
    EXPECT_THAT(refused[i].err, HasSubstr(named[i]));
  }
  EXPECT_THAT(refused[2].err, HasSubstr("none of the"));
  EXPECT_FALSE(fs::exists(folder / "runs"));

  const std::string run = base.run();
  const auto taken = run_all({train(run, "head"), train(run, "wide") + Words{"image_size=16"}}, folder.path());
  EXPECT_EQ(taken[0].code, kDone) << taken[0].all();
  EXPECT_THAT(taken[0].out,
              AllOf(HasSubstr("2 with a different shape"), HasSubstr("the head is new and starts untrained")));
  EXPECT_EQ(taken[1].code, kDone) << taken[1].all();
  EXPECT_THAT(taken[1].out,
              AllOf(HasSubstr("with a different shape"), HasSubstr("[256, 432] in the file, [256, 768] here")));

  // The weights are needed only once: a run resumes without the file that it began with.
  fs::copy(run, folder / "gift", fs::copy_options::recursive);
  ASSERT_EQ(run_stoker(train("gift", "from-gift"), folder.path()).code, kDone);
  fs::remove_all(folder / "gift");
  const Finished resumed = run_stoker({"resume", "runs/from-gift", "epochs=2"}, folder.path());
  EXPECT_EQ(resumed.code, kDone) << resumed.all();
}

}  // namespace
}  // namespace stoker::testing
