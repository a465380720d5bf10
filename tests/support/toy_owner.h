// SPDX-License-Identifier: Apache-2.0
// The owner of a training loop in tests: a constant learning rate, and functions that the test sets. Writes nothing.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "stoker/train/loop.h"

namespace stoker::testing {

struct ToyOwner final : train::LoopOwner {
  [[nodiscard]] double begin_step(std::int64_t) override {
    if (on_begin) {
      on_begin();
    }
    return rate;
  }
  void computed(const core::Batch&) override {
    if (on_computed) {
      on_computed();
    }
  }
  double step_done() override {
    if (on_step_done) {
      on_step_done();
    }
    return 0;
  }
  void booked(core::PhaseBook& book, std::int64_t step) override {
    if (on_booked) {
      on_booked(book, step);
    }
  }
  [[nodiscard]] bool validates() const override { return on_evaluate != nullptr; }
  [[nodiscard]] std::vector<core::MetricValue> evaluate() override { return on_evaluate(); }
  void save(const char* kind) override {
    if (on_save) {
      on_save(kind);
    }
  }
  void rescue() override {
    if (on_rescue) {
      on_rescue();
    }
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override { return "row " + std::to_string(index); }
  [[nodiscard]] bool stop_requested() const override { return stop; }

  double rate = 0.1;
  std::function<std::vector<core::MetricValue>()> on_evaluate;  // empty: no validation split
  std::function<void(const char* kind)> on_save;
  std::function<void()> on_rescue, on_begin, on_computed, on_step_done;
  std::function<void(core::PhaseBook& book, std::int64_t step)> on_booked;
  std::atomic<bool> stop = false;
};

}  // namespace stoker::testing
