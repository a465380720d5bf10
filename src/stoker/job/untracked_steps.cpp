// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/untracked_steps.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <variant>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/job/profile_orders.h"
#include "stoker/job/profile_watch.h"
#include "stoker/job/run_schedule.h"
#include "stoker/job/session.h"
#include "stoker/train/loop.h"
#include "stoker/train/resolve.h"

namespace stoker::job {
namespace {

// Progress, and of a run's events only what people must know. Any thread: a prefetcher reports samples.
class Remarks final : public core::EventEmitter {
 public:
  explicit Remarks(const Say& say) : say_(say) {}
  void emit(core::Event event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      remark(finding->text);
    } else if (const auto* fault = std::get_if<core::FaultSurvived>(&event)) {
      remark(fmt::format("step {}: {}", fault->step, fault->text));
    }
  }
  void progress(const std::string& text) {
    const std::lock_guard lock(mutex_);
    say_(text);
  }
  // Is kept for the record, since progress may be overwritten.
  void remark(const std::string& text) {
    constexpr std::size_t kMost = 20;
    const std::lock_guard lock(mutex_);
    say_(text);
    if (kept_.size() < kMost && std::ranges::find(kept_, text) == kept_.end()) {
      kept_.push_back(text);
    }
  }
  [[nodiscard]] std::vector<std::string> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  const Say& say_;
  mutable std::mutex mutex_;
  std::vector<std::string> kept_;
};

class UntrackedSteps final : private train::LoopOwner {
 public:
  UntrackedSteps(Setup& setup, const std::optional<io::Checkpoint>& resumed, const Say& say)
      : setup_(setup), remarks_(say), session_(setup, &remarks_) {
    if (resumed) {
      session_.load(*resumed);
    }
    schedule_ = schedule_of(setup.plan, train::total_steps(setup.plan, setup.task->size(tasks::Split::kTrain)));
    setup_.bad_samples = [this](const core::BadSample& bad) {
      remarks_.remark(fmt::format("{}: {}", bad.name, bad.reason));
    };
  }
  ~UntrackedSteps() override { setup_.bad_samples = nullptr; }
  UntrackedSteps(const UntrackedSteps&) = delete;
  UntrackedSteps& operator=(const UntrackedSteps&) = delete;

  std::string profile(std::int64_t steps, const std::filesystem::path& trace) {
    ProfileWatch watch(setup_, {}, remarks_, orders_);
    watch.write_only(trace, [this] { return remarks_.kept(); });
    watch_ = &watch;
    orders_.place(steps);
    last_ = session_.progress().step + ProfileWatch::kBefore + steps;
    train_until(last_);
    watch.finish();
    watch_ = nullptr;
    if (watch.failure()) {
      std::rethrow_exception(watch.failure());
    }
    return watch.record();
  }

 private:
  void train_until(std::int64_t last) {
    train::Plan plan = setup_.plan;
    plan.time = 0;  // the run's limits are not those of a few steps
    plan.profile.clear();
    const auto source = setup_.training_source(session_.progress().position);
    device::ScalarRing ring(setup_.device, session_.step().scalar_names().size());
    train::FeedWatch feed(*source, remarks_);
    (void)train::run_loop({.source = *source,
                           .step = session_.step(),
                           .progress = session_.progress(),
                           .recovery = session_.recovery(),
                           .scalars = ring,
                           .events = remarks_,
                           .feed = feed,
                           .ranks = *setup_.ranks,
                           .owner = *this},
                          plan, last);
  }

  double begin_step(std::int64_t step) override {
    remarks_.progress(fmt::format("step {}, {} to go", step + 1, last_ - step - 1));
    return optim::lr_at(schedule_, step);
  }
  void computed(const core::Batch& batch) override { samples_ = batch.global_size(); }
  double step_done() override { return watch_->step_done(session_.progress().step + 1, samples_); }
  bool validates() const override { return false; }
  std::vector<core::MetricValue> evaluate() override { return {}; }
  void save(const char*) override {}
  std::string sample_name(std::int64_t index) const override { return setup_.task->sample_name(index); }
  bool stop_requested() const override { return false; }

  Setup& setup_;
  Remarks remarks_;
  Session session_;
  optim::ScheduleOptions schedule_;
  ProfileOrders orders_;
  ProfileWatch* watch_ = nullptr;
  std::int64_t last_ = 0, samples_ = 0;
};

}  // namespace

std::string profile_untracked(Setup& setup, const std::optional<io::Checkpoint>& resumed, std::int64_t steps,
                              const std::filesystem::path& trace, const Say& say) {
  setup.plan.profile.clear();  // those of the run itself
  std::string record = UntrackedSteps(setup, resumed, say).profile(steps, trace);
  if (record.empty()) {
    fail<Error>("job.profile", "the training ended before a step could be recorded");
  }
  return record;
}

}  // namespace stoker::job
