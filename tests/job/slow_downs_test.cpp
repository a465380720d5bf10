// SPDX-License-Identifier: Apache-2.0
// A part of a training loop is slowed down by sleeping; the anatomy and the figures of the source name it. The twelve
// slow-downs that the loader is measured with (bench/data/watch_cases.cpp), and those inside a step.
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "stoker/base/fmt.h"
#include "stoker/core/parallel.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/device/prefetcher.h"
#include "stoker/observe/anatomy/step_anatomy.h"
#include "stoker/observe/feeding.h"
#include "stoker/train/loop.h"
#include "support/images.h"
#include "support/temp_folder.h"
#include "support/toy_owner.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

using data::Stage;
using testing::TempFolder;

constexpr double kSlow = 20e-3;  // s: much more than all that the loop does in a step
constexpr std::int64_t kSteps = 12, kBatch = 2;

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// What is slowed down, by kSlow in each step or sample.
struct Slow {
  const char* name;
  const char* phase;                // that the anatomy blames
  std::optional<Stage> stage = {};  // of the loader
  std::int64_t sample = -1;         // only this one
  bool jpeg = false, copy = false, forward = false, loss = false, backward = false, log = false, checkpoint = false,
       evaluation = false;
};

const Slow kSlowDowns[] = {{.name = "open", .phase = "fetch", .stage = Stage::kOpen},
                           {.name = "read", .phase = "fetch", .stage = Stage::kRead},
                           {.name = "JPEG decode", .phase = "fetch", .stage = Stage::kJpeg, .jpeg = true},
                           {.name = "PNG decode", .phase = "fetch", .stage = Stage::kPng},
                           {.name = "resize", .phase = "fetch", .stage = Stage::kResize},
                           {.name = "augment", .phase = "fetch", .stage = Stage::kAugment},
                           {.name = "collate", .phase = "fetch", .stage = Stage::kCollate},
                           {.name = "copy", .phase = "fetch", .copy = true},
                           {.name = "step", .phase = "forward", .forward = true},
                           {.name = "log", .phase = "logging", .log = true},
                           {.name = "checkpoint", .phase = "checkpoint", .checkpoint = true},
                           {.name = "one sample", .phase = "", .stage = Stage::kRead, .sample = 3},
                           {.name = "loss", .phase = "loss", .loss = true},
                           {.name = "backward", .phase = "backward", .backward = true},
                           {.name = "evaluation", .phase = "evaluation", .evaluation = true}};

// Copies that take their time, on the prefetcher's thread.
class SlowCopies final : public device::CopyStream {
 public:
  at::Tensor copy(const at::Tensor& host) override { return host; }
  at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) override { return at::empty(sizes, type); }
  at::Tensor room(std::int64_t bytes) override { return at::empty({bytes}, at::kByte); }
  void copy(const at::Tensor& host, const at::Tensor& there) override { there.copy_(host); }
  std::unique_ptr<device::Event> mark(bool timing) override {
    if (timing && std::exchange(begun_, !begun_)) {  // the second of a batch's two timed marks
      sleep(kSlow);
    }
    auto event = device::backend_for(c10::Device(c10::kCPU)).make_event(c10::kCPU, timing);
    event->record();
    return event;
  }
  void await(device::Event&) override {}
  void used_here(const at::Tensor&) override {}

 private:
  bool begun_ = false;
};

// The images of a loader with the fields of the toy network beside them.
class WithToyFields final : public core::BatchSource {
 public:
  explicit WithToyFields(std::unique_ptr<core::BatchSource> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    std::optional<core::Batch> batch = inner_->next();
    if (batch) {
      batch->set("x", at::arange(batch->size() * 6).to(at::kDouble).sin().reshape({batch->size(), 6}));
      batch->set("y", at::arange(batch->size()).remainder(4));
      batch->set("mask", at::ones({batch->size(), 4}, at::kDouble));
    }
    return batch;
  }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return inner_->figures(); }

 private:
  std::unique_ptr<core::BatchSource> inner_;
};

class SlowModel final : public testing::ToyTrainable {
 public:
  explicit SlowModel(const Slow& slow) : slow_(slow) {}
  core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    if (slow_.forward) {
      sleep(kSlow);
    }
    core::TensorList outputs = ToyTrainable::forward_segment(segment, std::move(inputs));
    if (slow_.backward) {
      outputs[0].register_hook([](const at::Tensor&) { sleep(kSlow); });
    }
    return outputs;
  }
  core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    if (slow_.loss) {
      sleep(kSlow);
    }
    return ToyTrainable::loss(outputs, batch);
  }

 private:
  const Slow& slow_;
};

struct Events final : core::EventEmitter {
  explicit Events(bool slow_one) : slow_log(slow_one) {}
  void emit(core::Event event) override {
    if (std::holds_alternative<core::StepFinished>(event) && slow_log) {
      sleep(kSlow);
    } else if (const auto* all = std::get_if<core::Anatomy>(&event); all != nullptr && all->whole) {
      anatomy = *all;
    } else if (const auto* each = std::get_if<core::SlowStep>(&event)) {
      slow.push_back(*each);
    }
  }
  bool slow_log;
  core::Anatomy anatomy;
  std::vector<core::SlowStep> slow;
};

struct Owner final : train::LoopOwner {
  double begin_step(std::int64_t) override { return 0.01; }
  bool validates() const override { return slow->evaluation; }
  std::vector<core::MetricValue> evaluate() override {
    sleep(kSteps * kSlow);
    return {{"loss", 1, false}};
  }
  void save(const char*) override {
    if (slow->checkpoint) {
      sleep(3 * kSlow);
    }
  }
  std::string sample_name(std::int64_t) const override { return ""; }
  bool stop_requested() const override { return false; }
  void booked(core::PhaseBook& book, std::int64_t step) override { anatomy->step_done(book, step); }

  const Slow* slow = nullptr;
  observe::StepAnatomy* anatomy = nullptr;
};

struct Seen {
  core::Anatomy anatomy;
  std::vector<core::SlowStep> slow;
  core::Fed fed;
};

class SlowDowns : public ::testing::TestWithParam<Slow> {
 protected:
  [[nodiscard]] std::unique_ptr<core::BatchSource> source(const Slow& slow) const {
    for (int i = 0; i < 24; ++i) {
      const std::string name = (i % 2 == 0 ? "a/" : "b/") + std::to_string(i);
      if (slow.jpeg) {
        std::filesystem::create_directories((folder_ / name).parent_path());
        std::filesystem::copy_file(testing::source_folder() / "tests/data/formats/smooth.jpg",
                                   folder_ / (name + ".jpg"));
      } else {
        folder_.write(name + ".png", testing::small_png(i));
      }
    }
    data::ImageLoaderOptions options;
    options.split = data::open_image_folder(folder_.path(), {.val = 0}).train;
    options.policy = {.crop = augment::Crop::kRandomResized, .out_width = 8, .out_height = 8, .flip = true};
    options.policy.operations = {augment::Grey{.probability = 1}};
    options.batch = kBatch;
    options.threads = 1;
    options.on_stage = [slow](Stage stage, std::int64_t sample) {
      if (stage == slow.stage) {
        const bool one = slow.sample >= 0;  // the others are long enough for the loader to time each of them
        sleep(!one ? kSlow : sample == slow.sample ? 20 * kSlow : kSlow / 20);
      }
    };
    std::unique_ptr<core::BatchSource> source = std::make_unique<data::ImageLoader>(std::move(options));
    if (slow.copy) {
      source = std::make_unique<device::Prefetcher>(std::move(source), std::make_unique<SlowCopies>());
    }
    return std::make_unique<WithToyFields>(std::move(source));
  }

  [[nodiscard]] Seen run(const Slow& slow) const {
    const core::OneThread alone;
    const auto loader = source(slow);
    SlowModel model(slow);
    train::Step step(model, {.name = "sgd"});
    train::Progress progress;
    device::ScalarRing ring(at::kCPU, step.scalar_names().size());
    Events events(slow.log);
    core::SingleRank ranks;
    train::Recovery recovery({});
    train::FeedWatch feed(*loader, events);
    observe::StepAnatomy anatomy(events, *loader);
    Owner owner;
    owner.slow = &slow;
    owner.anatomy = &anatomy;
    train::Plan plan;
    plan.device = "cpu";
    plan.eval_every = slow.evaluation ? kSteps / 2 : 0;
    plan.save_every = slow.checkpoint ? 2 : 0;
    (void)train::run_loop({*loader, step, progress, recovery, ring, events, feed, ranks, owner}, plan, kSteps);
    anatomy.finish(feed.book(), progress.step);
    return {events.anatomy, events.slow, feed.total(progress.step)};
  }

  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Each, SlowDowns, ::testing::ValuesIn(kSlowDowns), [](const auto& each) {
  std::string name = each.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST_P(SlowDowns, AreInTheirCategory) {
  const Slow& slow = GetParam();
  const Seen seen = run(slow);
  double sum = 0;
  for (const core::PhaseTime& each : seen.anatomy.phases) {
    sum += each.seconds;
  }
  EXPECT_NEAR(sum, seen.anatomy.seconds, 0.01 * seen.anatomy.seconds) << "the categories sum to wall time";
  EXPECT_EQ(seen.anatomy.steps, kSteps);
  if (slow.sample >= 0) {
    std::string causes;
    for (const core::SlowStep& each : seen.slow) {
      causes += fmt::format("step {} in {}: {}; ", each.step, each.phase, each.cause);
    }
    EXPECT_THAT(seen.slow, ::testing::Contains(::testing::Field(&core::SlowStep::cause,
                                                                ::testing::AllOf(::testing::StartsWith("slow sample "),
                                                                                 ::testing::HasSubstr(".png: 0.4")))))
        << causes << "; the source: " << seen.fed.source.slowest << ", " << seen.fed.source.slowest_seconds << " s";
    return;
  }
  const auto longest = std::ranges::max_element(seen.anatomy.phases, {}, &core::PhaseTime::seconds);
  EXPECT_EQ(longest->name, slow.phase);
  EXPECT_GT(longest->seconds, 0.5 * kSteps * kSlow);
  EXPECT_LT(longest->cpu_seconds, 0.5 * longest->seconds) << "it sleeps";
  if (slow.stage) {
    const auto stage = std::ranges::max_element(seen.fed.source.stages, {}, &core::StageFigures::seconds);
    EXPECT_EQ(stage->name, slow.name);
  } else if (slow.copy) {
    EXPECT_EQ(observe::explain(seen.fed).stage, "copy");
  }
}

}  // namespace
}  // namespace stoker::job
