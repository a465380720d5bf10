// SPDX-License-Identifier: Apache-2.0
// The command line with text: training, evaluation, resuming to the same bytes, generation, and helpful refusals.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/trained_run.h"
#include "support/guessing.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Words kShort = {"context=16", "layers=1",       "heads=2",       "width=16",      "batch=8",
                      "intra_op=1", "precision=fp32", "eval_every=20", "save_every=25", "sample_tokens=30"};

// A text that is easy to learn: lines that count.
std::string counting(int lines = 200) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += "line " + std::to_string(i % 10) + " comes after line " + std::to_string((i + 9) % 10) + "\n";
  }
  return text;
}

// The loss, in nats, of a model that knows only how frequent each character is.
double loss_by_frequency(const std::string& text) {
  std::map<char, double> counts;
  for (const char each : text) {
    ++counts[each];
  }
  const auto all = static_cast<double>(text.size());
  return std::accumulate(counts.begin(), counts.end(), 0.0, [all](double sum, const auto& count) {
    return sum - count.second / all * std::log(count.second / all);
  });
}

double figure(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? std::nan("") : std::stod(text.substr(at + name.size()));
}

TEST(Text, LearnsShowsSamplesAndWrites) {
  const TempFolder folder;
  folder.write("count.txt", counting());
  const Finished run =
      run_stoker(Words{"train", "count.txt", "run=a", "steps=200", "lr=0.01", "--quiet"} + kShort, folder.path());
  ASSERT_EQ(run.code, kDone) << run.all();
  const Finished eval = run_stoker({"eval", "runs/a"}, folder.path());
  EXPECT_LT(figure(eval.out, "loss"), loss_by_frequency(counting()) / 2) << eval.all();
  EXPECT_NEAR(figure(eval.out, "perplexity"), std::exp(figure(eval.out, "loss")), 2e-4);

  folder.write("other.txt", "line 1 comes after line 0\n");
  const Finished other = run_stoker({"eval", "runs/a", "other.txt", "--split", "train"}, folder.path());
  EXPECT_EQ(other.code, kDone) << other.all();

  const auto sample = nlohmann::json::parse(read_bytes(folder / "runs/a/artifacts/samples-000000200.json"));
  EXPECT_EQ(sample.at("kind"), "text");
  EXPECT_EQ(sample.at("step"), 200);
  EXPECT_EQ(sample.at("text").get<std::string>().size(), 30U);
  EXPECT_THAT(read_bytes(folder / "runs/a/report.html"), HasSubstr("Samples at step 200"));

  const Words ask = {"generate", "runs/a", "--prompt", "line 3 comes", "--tokens", "12", "--temperature", "0"};
  const Finished written = run_stoker(ask, folder.path());
  EXPECT_EQ(written.code, kDone) << written.all();
  EXPECT_EQ(written.out, run_stoker(ask, folder.path()).out);
  EXPECT_EQ(written.out.size(), std::string("line 3 comes").size() + 12 + 1);
  EXPECT_EQ(written.out.find("line 3 comes"), 0U);
  const Finished asked = run_stoker({"predict", "runs/a", "count.txt"}, folder.path());
  EXPECT_EQ(asked.code, kUsage) << asked.all();
  EXPECT_THAT(asked.err, HasSubstr("is a model for language_model, which cannot predict from files"));
  const Finished refused = run_stoker({"generate", "runs/a", "--prompt", "line \u00e9"}, folder.path());
  EXPECT_EQ(refused.code, kDataError);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("byte offset 5"), HasSubstr("tokenizer=bytes")));
  EXPECT_EQ(refused.out, "");
}

TEST(Text, ResumesToTheSameBytes) {
  const TempFolder folder;
  folder.write("count.txt", counting());
  const Words train = Words{"train", "count.txt", "schedule=constant", "warmup=0", "dropout=0.1", "--quiet"} + kShort;
  ASSERT_EQ(run_stoker(train + Words{"run=half", "steps=30"}, folder.path()).code, kDone);
  ASSERT_EQ(run_stoker({"resume", "runs/half", "steps=60", "--quiet"}, folder.path()).code, kDone);
  ASSERT_EQ(run_stoker(train + Words{"run=whole", "steps=60"}, folder.path()).code, kDone);
  EXPECT_TRUE(weights_of(folder / "runs/half") == weights_of(folder / "runs/whole"));  // EXPECT_EQ prints the bytes
  EXPECT_EQ(read_bytes(folder / "runs/half/artifacts/samples-000000060.json"),
            read_bytes(folder / "runs/whole/artifacts/samples-000000060.json"));
  folder.write("count.txt", counting(300));
  const Finished other = run_stoker({"resume", "runs/half", "steps=90"}, folder.path());
  EXPECT_EQ(other.code, kDataError);
  EXPECT_THAT(other.err, HasSubstr("changed since"));
}

// A validation that takes seconds reports its progress, stops on request, and is done after a resume.
TEST(Text, AValidationThatTakesLongIsInterruptedAndMadeUpFor) {
  const TempFolder folder;
  folder.write("count.txt", counting(80'000));
  const Words words = kShort + Words{"steps=5", "val=0.9", "save_every=0", "eval_every=5", "microbatch=8"};
  StokerProcess training(Words{"train", "count.txt", "run=a", "--json"} + words, folder.path());
  ASSERT_TRUE(training.wait_for("\"event\":\"evaluating\"")) << training.err();
  training.signal(SIGINT);
  const Finished stopped = training.finish();
  EXPECT_EQ(stopped.code, kStopped) << stopped.all();
  EXPECT_THAT(stopped.out, Not(HasSubstr("\"event\":\"evaluated\"")));
  EXPECT_THAT(read_bytes(folder / "runs/a/metrics.jsonl"), Not(HasSubstr("evaluating")));

  const Finished resumed = run_stoker({"resume", "runs/a", "--json"}, folder.path());
  EXPECT_EQ(resumed.code, kDone) << resumed.all();
  EXPECT_THAT(resumed.out, AllOf(HasSubstr("\"event\":\"evaluated\""), Not(HasSubstr("\"event\":\"step\""))));
}

TEST(Text, PiecesOfTheLossTrainAlike) {
  const TempFolder folder;
  folder.write("count.txt", counting());
  const Words train = Words{"train", "count.txt", "steps=40", "lr=0.01", "--quiet"} + kShort;
  ASSERT_EQ(run_stoker(train + Words{"run=plain"}, folder.path()).code, kDone);
  ASSERT_EQ(run_stoker(train + Words{"run=pieces", "loss_chunk=50"}, folder.path()).code, kDone);
  const double plain = figure(run_stoker({"eval", "runs/plain"}, folder.path()).out, "loss");
  EXPECT_NEAR(figure(run_stoker({"eval", "runs/pieces"}, folder.path()).out, "loss"), plain, 2e-4);
  const std::vector<double> losses = training_losses(folder / "runs/plain");
  ASSERT_EQ(losses.size(), 40U);
  EXPECT_LT(losses.back(), losses.front()) << "nothing was trained, so the comparison proves nothing";
}

TEST(Text, BytesTakeInvalidUtf8) {
  const TempFolder folder;
  folder.write("raw.txt", counting() + "\xff\xfe broken \xc3");
  const Words train = Words{"train", "raw.txt", "steps=5", "--quiet"} + kShort;
  const Finished run = run_stoker(train + Words{"run=a"}, folder.path());
  ASSERT_EQ(run.code, kDone) << run.all();
  EXPECT_THAT(read_bytes(folder / "runs/a/plan.json"), HasSubstr("the text is not UTF-8"));
  const Finished refused = run_stoker(train + Words{"run=b", "tokenizer=characters"}, folder.path());
  EXPECT_EQ(refused.code, kDataError);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("0xff at byte offset 5200"), HasSubstr("tokenizer=bytes")));
}

TEST(Text, RefusesInWordsThatHelp) {
  const TempFolder folder;
  folder.write("short.txt", "too short");
  folder.write("empty.txt", "");
  folder.write("count.txt", counting());
  folder.write("tokenizer.json", R"({"model": {"type": "WordPiece"}})");
  const auto refusal = [&](const Words& words, int code) {
    const Finished finished = run_stoker(Words{"train"} + words + Words{"run=x", "--quiet"}, folder.path());
    EXPECT_EQ(finished.code, code) << finished.all();
    EXPECT_FALSE(std::filesystem::exists(folder / "runs/x"));
    return finished.err;
  };
  EXPECT_THAT(refusal({"short.txt"}, kDataError),
              AllOf(HasSubstr("short.txt"), HasSubstr("context of 64"), HasSubstr("set context=8 or less")));
  EXPECT_THAT(refusal({"empty.txt"}, kDataError), HasSubstr("empty.txt: is empty"));
  EXPECT_THAT(refusal({"count.txt", "tokenizer=tokenizer.json"}, kDataError), HasSubstr("tokenizer.json"));
  EXPECT_THAT(refusal({"count.txt", "tokenizer=none.json"}, kDataError), HasSubstr("none.json"));
  EXPECT_THAT(refusal({"count.txt", "sample_prompt=\u20ac"}, kDataError), HasSubstr("U+20AC"));
  EXPECT_THAT(refusal({"count.txt", "heads=3"}, kUsage), HasSubstr("is not a multiple of 3 heads"));
  EXPECT_THAT(refusal({"count.txt", "image_size=3"}, kUsage), HasSubstr("image_size"));
  EXPECT_THAT(refusal({"count.txt", "model=resnet18"}, kUsage), HasSubstr("task language_model has no model resnet18"));
}

TEST(Text, WithoutValidationItTrainsAllTheSame) {
  const TempFolder folder;
  folder.write("count.txt", counting());
  const Finished run =
      run_stoker(Words{"train", "count.txt", "run=a", "val=0", "steps=5", "--quiet"} + kShort, folder.path());
  ASSERT_EQ(run.code, kDone) << run.all();
  EXPECT_THAT(run.all(), Not(HasSubstr("val:")));
  EXPECT_EQ(run_stoker({"eval", "runs/a"}, folder.path()).code, kDone);
}

}  // namespace
}  // namespace stoker::testing
