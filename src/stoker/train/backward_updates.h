// SPDX-License-Identifier: Apache-2.0
// The optimizer inside backward: updates each parameter as soon as its gradient is whole, and frees the gradient, so
// that all gradients never exist together. Weights and moments are those of a step after backward, to the bit, as long
// as nothing needs all gradients at once. Owned by train::Step; on a CPU, where the host knows at once whether a
// gradient is finite; one thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/trainable.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"

namespace stoker::train {

inline constexpr const char* kOptimizerInBackward = "optimizer_in_backward";  // the plan's name of it

// ConfigError for what needs all gradients at once, or the verdict on them before anything changes.
void check_in_backward(double clip, bool scaling, int ranks, c10::Device device);

// A loss or a gradient of a step is not finite, and the step cannot be skipped.
class NotFinite : public Error {
 public:
  NotFinite(std::string_view where, std::string_view what) : Error(where, what), reason_(what) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }  // without the place

 private:
  std::string reason_;
};

class BackwardUpdates {
 public:
  // Hooks the parameters that require gradients, until the end of this object. ConfigError if one has such a hook.
  BackwardUpdates(const std::vector<core::Parameter>& parameters, optim::Optimizer& optimizer,
                  precision::GradScaler& scaler);
  ~BackwardUpdates();
  BackwardUpdates(const BackwardUpdates&) = delete;
  BackwardUpdates& operator=(const BackwardUpdates&) = delete;

  // The learning rate of the next step.
  void set_lr(double lr);
  // Call it before each step. ConfigError if the step has several passes, if there is no learning rate, or if an
  // earlier step has failed half-way.
  void check_ready(std::int64_t passes) const;
  // NotFinite if the loss, float64 [terms], is not finite: before anything has changed.
  static void check_loss(const at::Tensor& parts);
  // Runs backward(). NotFinite at the first bad gradient: its parameter, and those that come later, stay as they are.
  // ConfigError if a parameter's gradient comes a second time, as from a backward pass inside of this one.
  void during(const std::function<void()>& backward);
  // The step is whole. ConfigError if it had another learning rate.
  void finish(double lr);

  // In a handler of a failure in compute(): OutOfMemory with what to do if memory ran out.
  void explain_failure() const;
  // A checkpoint was loaded: no step has begun.
  void forget() { updated_ = 0; }

  // Whether parameters have taken a step that is not finished.
  [[nodiscard]] bool begun() const { return updated_ > 0; }
  // "3 of 12 parameters"
  [[nodiscard]] std::string extent() const;

 private:
  class Hook;
  struct Slot {
    core::Parameter parameter;
    bool done = false;  // in this step
  };
  void update(std::size_t slot);
  [[noreturn]] void explain(const std::exception& error) const;
  void unhook();

  optim::Optimizer& optimizer_;
  precision::GradScaler& scaler_;
  std::vector<Slot> slots_;
  double lr_ = -1;       // below 0: not set
  bool active_ = false;  // within during(): another Step's backward on the same model changes nothing
  std::size_t updated_ = 0;
};

}  // namespace stoker::train
