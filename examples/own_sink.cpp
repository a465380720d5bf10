// SPDX-License-Identifier: Apache-2.0
// Your own event sink: it receives the events of a run, and here stops the run when it is good enough.
//
//     own_sink [DATA [RUN [ACCURACY]]]     RUN: a name (runs/NAME, or NAME-2, ... if that exists) or a path;
//                                          ACCURACY: where the run stops
//
// Events are plain structs. A sink receives them one at a time, in order, on its own thread: it may print, write or
// wait without delaying the loop. A step's loss may still be on its way from the device when the event arrives; read()
// waits for it. To stop a run, set the flag that was passed to train(): the run finishes its step, saves its checkpoint
// and can be resumed.
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
  // A mean over steps needs all of them. A sink that only shows progress omits this function; steps that arrive while
  // it is busy are then merged into the next one that it receives.
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  double wanted_;
  std::atomic<bool>& stop_;
  double loss_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: loads CUDA if there is a driver
  const std::string data = argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar";
  const std::string run = argc > 2 ? argv[2] : "own-sink";
  const double wanted = argc > 3 ? std::atof(argv[3]) : 0.74;

  job::Job job = job::Job::prepare(job::make_request({}, {"data=" + data, "run=" + run, "model=mlp", "epochs=40"}),
                                   [](const std::string&) {});
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(std::make_unique<GoodEnough>(wanted, stop));
  const job::Outcome outcome = job.train(std::move(sinks), stop);
  fmt::print("{}\n", outcome.end == train::LoopEnd::kStopped ? "good enough: stopped, `stoker resume` continues"
                                                             : "never good enough");
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
