// SPDX-License-Identifier: Apache-2.0
// An event sink of your own: it hears what happens in a run, and here ends it once it is good enough.
//
//     own_sink [DATA [RUN [ACCURACY]]]     RUN: a name (runs/NAME, or NAME-2, ... if that is there) or a path;
//                                          ACCURACY: enough is enough
//
// Events are plain structs. A sink gets them one at a time, in order, on a thread of its own: it may print, write or
// wait as long as it likes, the loop does not notice. A step's loss may still be on its way from the device when the
// event comes; read() waits for it. Whoever stops a run sets the flag that train() was given: the run finishes its
// step, saves its checkpoint and can be resumed.
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;

class GoodEnough final : public core::EventSink {
 public:
  GoodEnough(double wanted, std::atomic<bool>& stop) : wanted_(wanted), stop_(stop) {}

  void on(const core::Event& event) override {
    if (const auto* step = std::get_if<core::StepFinished>(&event)) {
      loss_ += step->scalars->read().values[0];  // RunStarted names them; the loss comes first
      ++steps_;
    } else if (const auto* evaluated = std::get_if<core::Evaluated>(&event); evaluated && evaluated->split == "val") {
      const core::MetricValue& metric = evaluated->metrics.front();
      fmt::print("after step {}: mean loss of {} steps {:.6f}, {} {:.4f}\n", evaluated->step, steps_,
                 loss_ / static_cast<double>(steps_), metric.name, metric.value);
      loss_ = 0;
      steps_ = 0;
      if (metric.value >= wanted_) {
        stop_ = true;
      }
    } else if (const auto* finished = std::get_if<core::RunFinished>(&event)) {
      fmt::print("the run ended at step {}: {}\n", finished->step, finished->outcome);
    }
  }
  // A mean over steps needs them all; a sink that only shows where the run stands leaves this out, and the steps that
  // it is too slow for are merged into the next one that it gets.
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  double wanted_;
  std::atomic<bool>& stop_;
  double loss_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: brings CUDA in where there is a driver
  const std::string data = argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar";
  const std::string run = argc > 2 ? argv[2] : "own-sink";
  const double wanted = argc > 3 ? std::atof(argv[3]) : 0.74;

  job::Job job = job::Job::prepare(job::make_request({}, {"data=" + data, "run=" + run, "model=mlp", "epochs=40"}),
                                   [](const std::string&) {});
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(std::make_unique<GoodEnough>(wanted, stop));
  const job::Outcome outcome = job.train(std::move(sinks), stop);
  fmt::print("{}\n", outcome.end == train::LoopEnd::kStopped ? "good enough: stopped, `stoker resume` goes on"
                                                             : "never good enough");
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
