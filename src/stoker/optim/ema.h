// SPDX-License-Identifier: Apache-2.0
// An exponential moving average of the weights, for evaluation and export. Part of the commit of a step: all state
// exists after construction, update() neither waits nor allocates on the device. Called by train::Step; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "stoker/core/stateful.h"
#include "stoker/core/trainable.h"
#include "stoker/optim/ema_weight.h"

namespace stoker::optim {

class Ema final : public core::Stateful {
 public:
  // decay in (0, 1). Averages start as copies of the current values. Running statistics of batch norms (norm_buffers)
  // are averaged together with their weights; counts among them are copied.
  Ema(const std::vector<core::Parameter>& parameters, const core::TensorList& norm_buffers, double decay);

  // average += (1 - d) * (value - average) with d = min(decay, (1 + t) / (10 + t)) at the t-th update, t from 1:
  // warm-up of tf.train.ExponentialMovingAverage. found_inf: float32 [1], 1 = change nothing; undefined = always
  // update.
  void update(const at::Tensor& found_inf = {});
  // The two halves of update(), for a step that computes the weight with other numbers: weight().next(), then apply().
  [[nodiscard]] EmaWeight& weight() { return weight_; }
  void apply();

  // Replaces the weights by the averages while it exists; training must not step in this time. One at a time. If the
  // constructor fails, the weights are unchanged. The destructor needs no memory: only a lost device can prevent the
  // weights from being restored.
  class InPlace {
   public:
    explicit InPlace(Ema& ema);
    ~InPlace();
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    void put_averages();
    void put_weights();

    Ema& ema_;
    std::vector<at::Tensor> weights_;  // the weights, as handles to their storage; undefined if they are in staging_
  };

  // Of the parameters, then of the norm buffers.
  [[nodiscard]] const std::vector<at::Tensor>& averages() const { return averages_; }

  // "ema.<parameter>", "ema.norm_buffers.<i>", "ema.updates".
  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  void refuse_in_place() const;

  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;    // parameters of the network, then its norm buffers
  std::vector<at::Tensor> averages_;  // float32 if the value is a half type, else the dtype of the value
  // Memory for a value in the dtype of its average if the two cannot exchange storage: half values, and norm buffers,
  // which are views of one fixed storage. Undefined otherwise.
  std::vector<at::Tensor> staging_;
  std::vector<at::Tensor> halves_, staged_halves_;  // half values and their memory
  std::size_t parameters_ = 0;                      // number of values that are parameters
  EmaWeight weight_;
  bool in_place_ = false;
};

}  // namespace stoker::optim
