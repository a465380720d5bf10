// SPDX-License-Identifier: Apache-2.0
// Runs whose passes are smaller than the batch: with batch norm a run says once what that changes and what helps; with
// norm=group or freeze_norm=on it says nothing, passes of one sample are allowed, and the result is the whole batch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "stoker/io/safetensors.h"
#include "stoker/job/job.h"
#include "stoker/job/loaded_model.h"
#include "support/image_set.h"
#include "support/job_runs.h"

namespace stoker::job {
namespace {

using stoker::testing::complaint;
using stoker::testing::Ran;
using stoker::testing::TempFolder;
using stoker::testing::write_striped_set;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Findings final : public core::EventSink {
 public:
  explicit Findings(std::vector<std::string>& texts) : texts_(texts) {}
  void on(const core::Event& event) override {
    const auto* finding = std::get_if<core::Finding>(&event);
    if (finding != nullptr && finding->text.find("is split into passes") != std::string::npos) {
      texts_.push_back(finding->text);
    }
  }

 private:
  std::vector<std::string>& texts_;
};

class SmallPasses : public ::testing::Test {
 protected:
  SmallPasses() { write_striped_set(folder_, "data/train/", 8); }

  // 24 samples in batches of 8.
  Ran train(const std::string& run, std::vector<std::string> words) {
    words.insert(words.begin(), {"device=cpu", "epochs=2", "batch=8", "threads=0", "intra_op=1", "precision=fp32",
                                 "layout=channels_last", "model=cnn", "val=0"});
    Request request = make_request({}, words);
    request.data = folder_ / "data";
    request.run = (folder_ / run).native();
    said_.clear();
    const std::atomic<bool> stop{false};
    Job job = Job::prepare(std::move(request), [](const std::string&) {});
    std::vector<std::unique_ptr<core::EventSink>> sinks;
    sinks.push_back(std::make_unique<Findings>(said_));
    const Outcome outcome = job.train(std::move(sinks), stop);
    return {outcome, job.run_path()};
  }
  [[nodiscard]] static std::map<std::string, at::Tensor> weights(const Ran& ran) {
    return io::read_safetensors(ran.folder / "checkpoints/last/weights.safetensors").tensors;
  }
  // The largest difference between two runs, relative to the largest value of a tensor.
  static double difference(const Ran& a, const Ran& b) {
    double most = 0;
    const auto left = weights(a), right = weights(b);
    for (const auto& [name, tensor] : left) {
      const double largest = tensor.abs().max().item<double>();
      most = std::max(most, (tensor - right.at(name)).abs().max().item<double>() / std::max(largest, 1e-3));
    }
    return most;
  }

  TempFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(SmallPasses, BatchNormIsMentionedOnceWithWhatHelps) {
  const Ran whole = train("whole", {});
  EXPECT_THAT(said_, IsEmpty());
  train("split", {"microbatch=4"});
  EXPECT_THAT(said_, ElementsAre(HasSubstr("larger passes help, and so does norm=group (docs/memory.md)")));
  train("tuned", {"microbatch=2", "weights=" + whole.folder.native()});
  EXPECT_THAT(said_, ElementsAre(HasSubstr("and so does freeze_norm=on")));
  train("shrunk", {"microbatch_schedule=2:4,4:2"});
  EXPECT_THAT(said_, ElementsAre(HasSubstr("split into passes of 4 samples"))) << "not once more for passes of 2";
}

TEST_F(SmallPasses, WithGroupNormTheyTrainAsTheWholeBatch) {
  const Ran whole = train("whole", {"norm=group"}), split = train("split", {"norm=group", "microbatch=1"});
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_LT(difference(split, whole), 0.01) << "rounding, after 6 steps";
  EXPECT_GT(difference(train("batch", {"microbatch=2"}), train("batches", {})), 0.05) << "the control";
  const LoadedModel loaded = load_model(split.folder, c10::Device(c10::kCPU), "last");
  EXPECT_TRUE(loaded.model->norm_buffers().empty()) << "the card says which norm";
}

TEST_F(SmallPasses, WithFrozenStatisticsTheyTrainAsTheWholeBatch) {
  const Ran base = train("base", {});
  const std::string from = "weights=" + base.folder.native();
  const Ran whole = train("whole", {from, "freeze_norm=on"}),
            split = train("split", {from, "freeze_norm=on", "microbatch=1"});
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_LT(difference(split, whole), 0.01);
  int statistics = 0;
  const auto before = weights(base), after = weights(split);
  for (const auto& [name, tensor] : before) {
    const bool running = name.find("running_") != std::string::npos;
    statistics += running ? 1 : 0;
    EXPECT_EQ(after.at(name).equal(tensor), running) << name;
  }
  EXPECT_GT(statistics, 0);
}

TEST_F(SmallPasses, OptionsThatCannotHelpAreRefused) {
  EXPECT_THAT(complaint([&] { train("run", {"freeze_norm=on"}); }), HasSubstr("set weights=FILE too"));
  EXPECT_THAT(complaint([&] { train("run", {"norm=group", "model=mlp"}); }), HasSubstr("no norm that norm=group"));
  EXPECT_THAT(complaint([&] { train("run", {"microbatch=1"}); }), HasSubstr("cannot train on 1 sample"));
  const Ran base = train("base", {"norm=group"});
  EXPECT_THAT(complaint([&] {
                train("run", {"norm=group", "freeze_norm=on", "weights=" + base.folder.native()});
              }),
              HasSubstr("has no batch norm"));
  EXPECT_THAT(complaint([&] {
                train("run", {"freeze_norm=on", "weights=" + base.folder.native()});
              }),
              HasSubstr("which has none that fit"));
}

}  // namespace
}  // namespace stoker::job
