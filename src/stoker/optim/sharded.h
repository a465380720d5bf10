// SPDX-License-Identifier: Apache-2.0
// An optimizer whose state is divided among ranks (ZeRO stage 1, Rajbhandari et al., 2020): each rank holds the moments
// and master weights of its part of all parameters, updates that part, and the ranks exchange the updated weights. The
// weights are those of the whole optimizer, to the bit. Made by job::Session; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/optim/fused.h"
#include "stoker/optim/optimizer.h"

namespace stoker::optim {

class ShardedOptimizer final : public Optimizer {
 public:
  // A collective call. As make_optimizer(); ranks outlive it. ConfigError for a parameter whose memory has gaps.
  ShardedOptimizer(const OptimizerOptions& options, const std::vector<core::Parameter>& parameters,
                   core::Communicator& ranks);

  using Optimizer::step;
  void set_lr(double lr) override { own_->set_lr(lr); }
  void adopt_gradients() override;
  // A collective call.
  void step(const at::Tensor& found_inf, const at::Tensor& grad_scale) override;
  // Of this rank's part.
  [[nodiscard]] std::int64_t state_bytes() const override { return own_->state_bytes(); }
  void save_state(core::State& state) const override { own_->save_state(state); }
  [[nodiscard]] core::State whole_state() override;
  // From the state of the whole optimizer.
  void load_state(const core::State& state) override;

 private:
  // Elements begin ... end - 1 of a parameter, in the order of its memory.
  struct Piece {
    std::size_t parameter = 0;
    std::int64_t begin = 0, end = 0;
  };
  // Bytes of a piece, and where they lie in a message.
  struct Section {
    at::Tensor weights, message;
  };
  [[nodiscard]] std::vector<Piece> pieces_of(int rank) const;
  void make_own_part(const OptimizerOptions& options);
  void make_messages();
  void add_sections(std::vector<std::vector<Section>>& rounds, const std::vector<Piece>& pieces,
                    const at::Tensor& message) const;
  void exchange_weights();
  // The tensors of a part's state: of each piece the kinds that its parameter has.
  [[nodiscard]] std::vector<const char*> kinds_of(const core::Parameter& parameter) const;
  [[nodiscard]] at::ScalarType state_type(const core::Parameter& parameter) const;
  [[nodiscard]] at::Tensor empty_like(const core::Parameter& parameter, std::optional<at::Device> device = {}) const;
  [[nodiscard]] at::Tensor packed_state() const;
  void unpack_state(const at::Tensor& bytes, int rank, core::State& whole) const;
  [[nodiscard]] std::int64_t packed_bytes(int rank) const;

  std::vector<core::Parameter> parameters_;    // that are trained
  std::unique_ptr<core::Communicator> ranks_;  // the same ranks, over connections of their own
  const bool adam_;
  const double momentum_;
  std::vector<Piece> own_pieces_;
  std::vector<at::Tensor> own_weights_;  // leaves that alias the pieces, 1-dim
  std::unique_ptr<FusedOptimizer> own_;
  at::Tensor message_;                                       // uint8: a part of this rank's weights
  at::Tensor messages_;                                      // of all ranks, a row each
  std::vector<std::vector<Section>> sent_;                   // by round
  std::vector<std::vector<std::vector<Section>>> received_;  // by rank and round
};

}  // namespace stoker::optim
