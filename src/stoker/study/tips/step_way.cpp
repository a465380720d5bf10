// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/step_way.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "stoker/device/backend.h"
#include "stoker/device/placement.h"
#include "stoker/study/tips/optimizer_by_parameter.h"
#include "stoker/train/evaluate.h"

namespace stoker::study {
namespace {

BenchModel make_bench(const TipCase& tip_case, const StepHabits& habits = {}) {
  BenchOptions options = habits.model;
  options.device = tip_case.device;
  options.dtype = tip_case.dtype;
  options.batch = habits.batches * (tip_case.batch > 0 ? tip_case.batch : bench_model(tip_case.model).batch);
  BenchModel bench = make_bench_model(tip_case.model, options);
  if (tip_case.plain_sgd) {
    bench.optimizer = {.name = "sgd", .weight_decay = 0, .momentum = 0.9, .nesterov = true};
    bench.lr = 0.01;
  }
  return bench;
}

std::vector<core::NamedTensor> parameters_of(const core::Trainable& model) {
  std::vector<core::NamedTensor> all;
  for (const core::Parameter& parameter : model.parameters()) {
    all.push_back({parameter.name, parameter.tensor.detach()});
  }
  return all;
}

// The batch, once per epoch.
class OneBatch final : public core::BatchSource {
 public:
  explicit OneBatch(const core::Batch& batch) : batch_(batch) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    asked_ = !asked_;
    return asked_ ? std::optional(batch_.slice(0, batch_.size())) : std::nullopt;
  }

 private:
  const core::Batch& batch_;
  bool asked_ = false;
};

struct Afterwards {
  const std::function<void()>& call;
  ~Afterwards() {
    if (call) {
      call();
    }
  }
};

// Everything that a step of the engine uses, in order.
struct Engine {
  Engine(const TipCase& tip_case, const StepHabits& chosen)
      : habits(chosen),
        watch(tip_case.watch),
        bench(make_bench(tip_case, chosen)),
        scaler({.scaling = chosen.step.autocast == at::kHalf}, tip_case.device),
        optimizer(chosen.optimizer_by_parameter
                      ? make_optimizer_by_parameter(bench.optimizer, bench.model->parameters())
                      : optim::make_optimizer(bench.optimizer, bench.model->parameters())),
        step({*bench.model, *optimizer, scaler, ranks}, chosen.step) {}

  // One step for each part of the batch.
  void call() {
    const std::int64_t size = bench.batch.size(), parts = habits.steps;
    for (std::int64_t part = 0; part < parts; ++part) {
      if (habits.before) {
        habits.before();
      }
      const Afterwards afterwards{habits.after};
      take(bench.batch.slice(part * size / parts, (part + 1) * size / parts));
    }
  }
  void take(const core::Batch& batch) {
    if (watch) {
      watch(batch);
    }
    const double lr = bench.lr * habits.lr_factor;
    step.set_lr(lr);
    step.compute(batch, number++, habits.microbatch);
    step.commit(lr);
  }

  StepHabits habits;
  std::function<void(const core::Batch&)> watch;
  BenchModel bench;
  core::SingleRank ranks;
  precision::GradScaler scaler;
  std::unique_ptr<optim::Optimizer> optimizer;
  train::Step step;
  std::int64_t number = 0;
};

}  // namespace

std::function<void()> wait_for(c10::Device device) {
  return device.is_cpu() ? std::function<void()>() : [device] { device::backend_for(device).synchronize(device); };
}

Way engine_way(const TipCase& tip_case, const StepHabits& habits) {
  const auto engine = std::make_shared<Engine>(tip_case, habits);
  const auto wait = wait_for(tip_case.device);
  Way way;
  way.side.call = [engine] { engine->call(); };
  way.side.finish = [engine, wait] {
    if (wait) {
      wait();
    }
    if (engine->habits.finish) {
      engine->habits.finish();
    }
  };
  way.outcome = [engine] { return parameters_of(*engine->bench.model); };
  return way;
}

StepOnBatches engine_step(const TipCase& tip_case) {
  const auto engine = std::make_shared<Engine>(tip_case, StepHabits{});
  return {[engine, device = tip_case.device](core::Batch batch) {
            engine->take(device::move_batch(std::move(batch), device));
          },
          [engine] { return parameters_of(*engine->bench.model); }};
}

Way bare_way(const TipCase& tip_case, bool keep_gradients) {
  const auto bench = std::make_shared<BenchModel>(make_bench(tip_case));
  const std::shared_ptr<optim::Optimizer> optimizer =
      optim::make_optimizer(bench->optimizer, bench->model->parameters());
  Way way;
  way.side.call = [bench, optimizer, keep_gradients] {
    core::Trainable& model = *bench->model;
    const core::Batch& batch = bench->batch;
    const core::LossTerms terms = model.loss(model.forward(model.inputs(batch)), batch);
    const core::NormalisedLoss loss = core::normalise(terms, model.normalisers(batch));
    torch::autograd::backward(loss.sums, loss.gradients);
    optimizer->step(bench->lr);
    for (const core::Parameter& parameter : model.parameters()) {
      if (at::Tensor& gradient = parameter.tensor.mutable_grad(); keep_gradients && gradient.defined()) {
        gradient.zero_();
      } else {
        gradient = at::Tensor();
      }
    }
  };
  way.side.finish = wait_for(tip_case.device);
  way.outcome = [bench] { return parameters_of(*bench->model); };
  return way;
}

Way evaluation_way(const TipCase& tip_case, bool record_graph) {
  const auto bench = std::make_shared<BenchModel>(make_bench(tip_case));
  bench->model->set_training(false);
  const auto totals = std::make_shared<std::vector<core::NamedTensor>>();
  Way way;
  if (record_graph) {
    way.side.call = [bench, totals] {
      const core::TensorList outputs = bench->model->forward(bench->model->inputs(bench->batch));
      *totals = bench->model->evaluate(outputs, bench->batch);  // the graph is freed with the outputs
      for (core::NamedTensor& total : *totals) {
        total.tensor = total.tensor.detach().cpu();
      }
    };
  } else {
    way.side.call = [bench, totals] {
      OneBatch source(bench->batch);
      *totals = train::evaluate(*bench->model, source, at::kFloat);
    };
  }
  way.side.finish = wait_for(tip_case.device);
  way.outcome = [totals] { return *totals; };
  return way;
}

}  // namespace stoker::study
