// SPDX-License-Identifier: Apache-2.0
// An exponential moving average of the weights, for evaluation and export. Part of a step's commit: state exists from
// construction on, update() neither waits nor allocates on the device. Called by train::Step; one thread.
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
  // decay in (0, 1). Averages start as copies of what is there. Running statistics of batch norms (norm_buffers) are
  // averaged with the weights they belong to.
  Ema(const std::vector<core::Parameter>& parameters, const core::TensorList& norm_buffers, double decay);

  // average += (1 - d) * (value - average) with d = min(decay, (1 + t) / (10 + t)) at the t-th update, t from 1:
  // tf.train.ExponentialMovingAverage's warm-up. found_inf: float32 [1], 1 = change nothing; undefined = go ahead.
  void update(const at::Tensor& found_inf = {});
  // Its two halves, for a step that finds the weight together with other numbers: weight().next(), then apply().
  [[nodiscard]] EmaWeight& weight() { return weight_; }
  void apply();

  // Puts the averages in the weights' place for as long as it lives; training must not step meanwhile. One at a time.
  // If it cannot be made, the weights are what they were. Its end needs no memory: only a lost device keeps the weights
  // from coming back.
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
    std::vector<at::Tensor> weights_;  // what stood there, as handles to its storage; undefined where it is in staging_
  };

  // "ema.<parameter>", "ema.norm_buffers.<i>", "ema.updates".
  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  void refuse_in_place() const;

  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;    // the network's parameters, then its norm buffers
  std::vector<at::Tensor> averages_;  // float32 where the value is a half type, else the value's dtype
  // Room for one value in its average's dtype, where the two cannot change storage: half values, and norm buffers,
  // which are views of one storage that must stay theirs. Undefined elsewhere.
  std::vector<at::Tensor> staging_;
  std::vector<at::Tensor> halves_, staged_halves_;  // half values, and their room
  std::size_t parameters_ = 0;                      // how many of the values are parameters
  EmaWeight weight_;
  bool in_place_ = false;
};

}  // namespace stoker::optim
