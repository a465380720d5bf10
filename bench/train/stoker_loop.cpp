// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>

#include "step_loops.h"
#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/device/throttled_memory.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/progress_line.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/memory/leak_watch.h"
#include "stoker/observe/anatomy/step_anatomy.h"
#include "stoker/precision/autocast.h"
#include "stoker/train/loop.h"

namespace stoker::bench {
namespace {

// Returns the case's batch again and again: a new Batch around the same tensors, like a loader's.
class RepeatingSource final : public core::BatchSource {
 public:
  explicit RepeatingSource(const core::Batch& batch) : batch_(batch) {}

  [[nodiscard]] std::optional<core::Batch> next() override {
    if (!booked) {
      core::t_book = nullptr;  // the scopes of this loop book nothing
    }
    if (before_ && !before_()) {
      return std::nullopt;
    }
    core::Batch batch({0, step_++}, batch_.indices());
    for (const core::Field& field : batch_.fields()) {
      batch.set(field);
    }
    return batch;
  }
  void set_before(const std::function<bool()>& before) { before_ = before; }

  bool booked = true;

 private:
  const core::Batch& batch_;
  std::int64_t step_ = 0;
  std::function<bool()> before_;
};

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "step-bench-XXXXXX").native()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      fail<IoError>("bench.step", "cannot create a temporary folder");
    }
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The owner of a run without evaluations; save() does nothing. It looks for leaks like job::MemoryWatch.
class Owner final : public train::LoopOwner {
 public:
  Owner(double lr, c10::Device device) : lr_(lr), device_(device), memory_bytes_(device::throttled_memory(device)) {}
  double begin_step(std::int64_t) override { return lr_; }
  bool validates() const override { return false; }
  std::vector<core::MetricValue> evaluate() override { return {}; }
  void save(const char*) override {}
  std::string sample_name(std::int64_t) const override { return ""; }
  std::int64_t memory_bytes() override { return memory_bytes_(); }
  double step_done() override {
    (void)tensors_.add(++steps_, device::backend_for(device_).allocated(device_));
    if (steps_ % 8 == 0) {
      (void)heap_.add(steps_, device::heap_bytes().used - device::host_allocated_in_heap());
    }
    return 0;
  }
  void booked(core::PhaseBook& book, std::int64_t step) override {
    if (anatomy) {
      anatomy->step_done(book, step);
    }
  }
  bool stop_requested() const override { return stop; }

  std::atomic<bool> stop = false;
  std::optional<observe::StepAnatomy> anatomy;  // of one call of run()

 private:
  double lr_;
  c10::Device device_;
  std::function<std::int64_t()> memory_bytes_;
  memory::LeakWatch tensors_, heap_{{.warm_up = 4, .settle = 1, .window = 32, .look_every = 4, .least = 512}};
  std::int64_t steps_ = 0;
};

class StokerLoop final : public Loop {
 public:
  StokerLoop(StepCase& made, const bool* anatomy)
      : anatomy_(anatomy),
        optimizer_(optim::make_optimizer(made.optimizer, made.model->parameters())),
        scaler_({.scaling = made.options.precision == "fp16"}, made.options.device),
        step_({*made.model, *optimizer_, scaler_, ranks_}, step_options(made)),
        ring_(made.options.device, step_.scalar_names().size()),
        source_(made.batch),
        feed_(source_, bus_),
        recovery_({.device = made.options.device, .events = &bus_}),
        owner_(made.lr, made.options.device),
        parts_{.source = source_,
               .step = step_,
               .progress = progress_,
               .recovery = recovery_,
               .scalars = ring_,
               .events = bus_,
               .feed = feed_,
               .ranks = ranks_,
               .owner = owner_} {
    plan_.device = made.options.device.is_cpu() ? "cpu" : "cuda";
    plan_.save_every = std::numeric_limits<std::int64_t>::max();
    plan_.eval_every = plan_.save_every;
    nowhere_.open("/dev/null");
    io::ProgressOptions progress;
    progress.mode = io::ProgressMode::kTerminal;
    progress.out = &nowhere_;
    bus_.add(std::make_unique<io::MetricsCsv>(folder_.path()), /*awaited=*/true);
    bus_.add(std::make_unique<io::MetricsJsonl>(folder_.path()), /*awaited=*/true);
    bus_.add(std::make_unique<io::TensorBoardLog>(folder_.path()));
    bus_.add(std::make_unique<io::ProgressLine>(progress));
    core::RunStarted started;
    started.folder = folder_.path();
    started.title = "a bench";
    started.scalars = step_.scalar_names();
    started.epochs = 1;
    started.steps_per_epoch = started.last_step = 1'000'000'000;
    bus_.emit(started);
  }

  void run(std::int64_t steps, const std::function<bool()>& before) override {
    owner_.stop = false;
    source_.booked = anatomy_ == nullptr || *anatomy_;
    owner_.anatomy.reset();
    if (source_.booked) {
      owner_.anatomy.emplace(bus_, source_);
    }
    source_.set_before(before ? [this, &before] { return !owner_.stop && (before() || (owner_.stop = true, false)); }
                              : std::function<bool()>());
    train::run_loop(parts_, plan_, progress_.step + steps);
  }

 private:
  static train::StepOptions step_options(const StepCase& made) {
    train::StepOptions options;
    options.autocast = precision::autocast_dtype(made.options.precision);
    return options;
  }

  const bool* anatomy_;
  TempFolder folder_;
  std::ofstream nowhere_;
  core::SingleRank ranks_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  precision::GradScaler scaler_;
  train::Step step_;
  train::Progress progress_;
  device::ScalarRing ring_;
  train::Plan plan_;
  RepeatingSource source_;
  io::EventBus bus_;  // its sinks use the members above
  train::FeedWatch feed_;
  train::Recovery recovery_;
  Owner owner_;
  train::LoopParts parts_;
};

}  // namespace

std::unique_ptr<Loop> make_stoker_loop(StepCase& made, const bool* anatomy) {
  return std::make_unique<StokerLoop>(made, anatomy);
}

}  // namespace stoker::bench
