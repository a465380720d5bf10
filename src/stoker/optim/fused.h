// SPDX-License-Identifier: Apache-2.0
// AdamW, Adam and SGD on LibTorch's fused kernels, one kernel call per group of like parameters. Made by
// make_optimizer; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stoker/optim/optimizer.h"

namespace stoker::optim {

class FusedOptimizer final : public Optimizer {
 public:
  FusedOptimizer(const OptimizerOptions& options, const std::vector<core::Parameter>& parameters);

  using Optimizer::step;
  void set_lr(double lr) override;
  void adopt_gradients() override;
  void step(const at::Tensor& found_inf, const at::Tensor& grad_scale) override;
  void count_step() override;
  void update(const at::Tensor& parameter) override;
  [[nodiscard]] std::int64_t state_bytes() const override;
  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  // One parameter and its state.
  struct Slot {
    std::string name;
    at::Tensor parameter;
    at::Tensor value;          // updated by the kernel: the parameter, or its float32 master
    at::Tensor first, second;  // exp_avg and exp_avg_sq; or momentum and undefined; or both undefined
    [[nodiscard]] bool has_master() const { return !value.is_same(parameter); }
    // Bytes touched by a step on a CPU, compared with core::kOneThreadBytes.
    [[nodiscard]] std::int64_t bytes_moved() const;
  };
  // Parameters for one kernel call: same device, dtype, decay and learning rate, and all large enough for several
  // threads or all too small.
  struct TensorGroup {
    at::Device device;
    at::ScalarType dtype;
    double weight_decay, lr_factor;
    bool one_thread;   // on a CPU: too small for several threads
    at::Tensor lr;     // 0-dim on the device: float64 on a CPU, else float32, the only dtype of the kernels there
    at::Tensor steps;  // float32 0-dim on the device: number of steps; shared by all groups of a device
    std::vector<Slot> slots;
    std::vector<at::Tensor> halves, masters;  // of slots with a master
  };
  // The lists of a kernel call; kept between steps to avoid allocation.
  struct Lists {
    std::vector<at::Tensor> values, grads, first, second, steps;
    void clear();
  };

  void add(const core::Parameter& parameter);
  // The group of a slot; a new one if there is none yet.
  TensorGroup& group_for(const Slot& slot, double weight_decay, double lr_factor);
  static void adopt_gradient(const Slot& slot);
  void add_to_lists(const TensorGroup& group, const Slot& slot);
  // Calls the kernel on the lists.
  void launch_lists(const TensorGroup& group, const at::Tensor& found_inf, const at::Tensor& grad_scale);
  void launch(const TensorGroup& group, const at::Tensor& found_inf, const at::Tensor& grad_scale);
  template <typename Lr>
  void launch(const TensorGroup& group, const Lr& lr, const at::Tensor& found_inf, const at::Tensor& grad_scale);
  // Calls visit(name, tensor) for every tensor of the state.
  template <typename Visit>
  void each_tensor(Visit visit) const;

  OptimizerOptions options_;
  std::vector<TensorGroup> groups_;
  std::vector<at::Tensor> step_counters_;  // one per device
  std::vector<at::Tensor> ones_;           // increments of the counters; adding a number would allocate
  Lists lists_;
  std::map<const c10::TensorImpl*, std::pair<std::size_t, std::size_t>> places_;  // group and slot of a parameter
};

}  // namespace stoker::optim
