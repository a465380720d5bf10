// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/sharded.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/optim/memory_order.h"

namespace stoker::optim {
namespace {

constexpr std::string_view kWhere = "optim.sharded";
// Kernels treat the last elements of a tensor, fewer than a vector, in another loop. A cut at a multiple of this leaves
// each element in the loop that it has in the whole tensor.
constexpr std::int64_t kElements = 64;
constexpr std::int64_t kMessages = std::int64_t{8} << 20;  // bytes of the messages of all ranks
constexpr std::int64_t kLeastMessage = std::int64_t{64} << 10;

// All elements as they lie in memory, 1-dim.
at::Tensor in_memory_order(const at::Tensor& tensor) { return tensor.as_strided({tensor.numel()}, {1}); }

at::Tensor bytes_of(const at::Tensor& flat) { return flat.view(at::kByte); }

}  // namespace

ShardedOptimizer::ShardedOptimizer(const OptimizerOptions& options, const std::vector<core::Parameter>& parameters,
                                   core::Communicator& ranks)
    : ranks_(ranks.split(0)), adam_(options.name != "sgd"), momentum_(options.momentum) {
  for (const core::Parameter& each : parameters) {
    if (each.tensor.requires_grad()) {
      if (!each.tensor.is_non_overlapping_and_dense()) {
        fail<ConfigError>(kWhere, "the memory of parameter {} has gaps; shard=none takes it", each.name);
      }
      parameters_.push_back(each);
    }
  }
  make_own_part(options);
  make_messages();
}

// The r-th of as many equal ranges of all elements as there are ranks. Borders are rounded up, so that rank 0, which
// saves the step counter, has some.
std::vector<ShardedOptimizer::Piece> ShardedOptimizer::pieces_of(int rank) const {
  std::int64_t total = 0;
  for (const core::Parameter& each : parameters_) {
    total += each.tensor.numel();
  }
  const auto end_of = [&](int ranks) { return (ranks * total + ranks_->size() - 1) / ranks_->size(); };
  const std::int64_t low = end_of(rank), high = end_of(rank + 1);
  std::vector<Piece> pieces;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::int64_t size = parameters_[i].tensor.numel();
    const auto border = [&](std::int64_t at) {
      const std::int64_t inside = std::clamp<std::int64_t>(at - before, 0, size);
      return std::min(size, (inside + kElements - 1) / kElements * kElements);
    };
    if (const Piece piece{i, border(low), border(high)}; piece.begin < piece.end) {
      pieces.push_back(piece);
    }
    before += size;
  }
  return pieces;
}

void ShardedOptimizer::make_own_part(const OptimizerOptions& options) {
  own_pieces_ = pieces_of(ranks_->rank());
  std::vector<core::Parameter> own;
  for (const Piece& piece : own_pieces_) {
    const core::Parameter& whole = parameters_[piece.parameter];
    const at::Tensor part = in_memory_order(whole.tensor.detach()).slice(0, piece.begin, piece.end);
    own.push_back({whole.name, part.set_requires_grad(true), whole.role, whole.segments});
    own_weights_.push_back(part);
  }
  own_ = std::make_unique<FusedOptimizer>(options, own);
  for (const core::Parameter& each : parameters_) {
    if (at::isReducedFloatingType(each.tensor.scalar_type())) {  // as FusedOptimizer does for a whole one
      each.tensor.mutable_grad().reset();
      each.tensor.set_grad_dtype(at::kFloat);
    }
  }
}

void ShardedOptimizer::make_messages() {
  const std::int64_t bytes = std::max(kLeastMessage, kMessages / (ranks_->size() + 1) / kElements * kElements);
  const at::Device device = parameters_.empty() ? at::Device(at::kCPU) : parameters_.front().tensor.device();
  message_ = at::zeros({bytes}, at::device(device).dtype(at::kByte));
  messages_ = at::zeros({ranks_->size(), bytes}, message_.options());
  add_sections(sent_, own_pieces_, message_);
  received_.resize(static_cast<std::size_t>(ranks_->size()));
  std::size_t rounds = sent_.size();
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    if (rank != ranks_->rank()) {
      add_sections(received_[place], pieces_of(rank), messages_[rank]);
    }
    rounds = std::max(rounds, received_[place].size());
  }
  sent_.resize(rounds);
  for (auto& each : received_) {
    each.resize(rounds);
  }
}

// Cuts the bytes of the pieces, one after the other, into messages.
void ShardedOptimizer::add_sections(std::vector<std::vector<Section>>& rounds, const std::vector<Piece>& pieces,
                                    const at::Tensor& message) const {
  const at::NoGradGuard no_grad;
  std::int64_t used = message.numel();
  for (const Piece& piece : pieces) {
    const at::Tensor part = in_memory_order(parameters_[piece.parameter].tensor.detach());
    const at::Tensor bytes = bytes_of(part.slice(0, piece.begin, piece.end));
    for (std::int64_t done = 0; done < bytes.numel();) {
      if (used == message.numel()) {
        rounds.emplace_back();
        used = 0;
      }
      const std::int64_t size = std::min(bytes.numel() - done, message.numel() - used);
      rounds.back().push_back({bytes.narrow(0, done, size), message.narrow(0, used, size)});
      done += size;
      used += size;
    }
  }
}

void ShardedOptimizer::adopt_gradients() {
  const at::NoGradGuard no_grad;
  for (const core::Parameter& each : parameters_) {
    at::Tensor& gradient = each.tensor.mutable_grad();
    if (gradient.defined() && (gradient.scalar_type() != state_type(each) || !same_layout(gradient, each.tensor) ||
                               !gradient.is_non_overlapping_and_dense())) {
      gradient = empty_like(each).copy_(gradient);
    }
  }
}

// Uninitialised, with the layout of the parameter and the dtype of its state.
at::Tensor ShardedOptimizer::empty_like(const core::Parameter& parameter, std::optional<at::Device> device) const {
  return at::empty_like(parameter.tensor, parameter.tensor.options()
                                              .device(device.value_or(parameter.tensor.device()))
                                              .dtype(state_type(parameter))
                                              .requires_grad(false));
}

void ShardedOptimizer::step(const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  const at::NoGradGuard no_grad;
  adopt_gradients();
  for (std::size_t i = 0; i < own_pieces_.size(); ++i) {
    const Piece& piece = own_pieces_[i];
    const at::Tensor& gradient = parameters_[piece.parameter].tensor.grad();
    own_weights_[i].mutable_grad() =
        gradient.defined() ? in_memory_order(gradient).slice(0, piece.begin, piece.end) : at::Tensor();
  }
  own_->step(found_inf, grad_scale);
  for (const at::Tensor& each : own_weights_) {
    each.mutable_grad() = at::Tensor();
  }
  exchange_weights();
}

void ShardedOptimizer::exchange_weights() {
  const core::PhaseScope phase(core::Phase::kExchange);
  for (std::size_t round = 0; round < sent_.size(); ++round) {
    for (Section& each : sent_[round]) {
      each.message.copy_(each.weights);
    }
    if (const auto pending = ranks_->start_exchange(message_, messages_)) {
      pending->wait();
    }
    for (auto& of_rank : received_) {
      for (Section& each : of_rank[round]) {
        each.weights.copy_(each.message);
      }
    }
  }
}

std::vector<const char*> ShardedOptimizer::kinds_of(const core::Parameter& parameter) const {
  std::vector<const char*> kinds;
  if (adam_) {
    kinds = {"exp_avg", "exp_avg_sq"};
  } else if (momentum_ > 0) {
    kinds = {"momentum"};
  }
  if (at::isReducedFloatingType(parameter.tensor.scalar_type())) {
    kinds.push_back("master");
  }
  return kinds;
}

at::ScalarType ShardedOptimizer::state_type(const core::Parameter& parameter) const {
  const at::ScalarType type = parameter.tensor.scalar_type();
  return at::isReducedFloatingType(type) ? at::kFloat : type;
}

std::int64_t ShardedOptimizer::packed_bytes(int rank) const {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces_of(rank)) {
    const core::Parameter& parameter = parameters_[piece.parameter];
    bytes += (piece.end - piece.begin) * static_cast<std::int64_t>(c10::elementSize(state_type(parameter))) *
             static_cast<std::int64_t>(kinds_of(parameter).size());
  }
  return bytes;
}

at::Tensor ShardedOptimizer::packed_state() const {
  core::State state;
  own_->save_state(state);
  std::vector<at::Tensor> parts{at::empty({0}, at::kByte)};
  for (const Piece& piece : own_pieces_) {
    const core::Parameter& parameter = parameters_[piece.parameter];
    for (const char* const kind : kinds_of(parameter)) {
      parts.push_back(bytes_of(state.tensors.at(fmt::format("optimizer.{}.{}", kind, parameter.name))).cpu());
    }
  }
  return at::cat(parts);
}

// Puts the state of one rank's part into the whole one.
void ShardedOptimizer::unpack_state(const at::Tensor& bytes, int rank, core::State& whole) const {
  std::int64_t used = 0;
  for (const Piece& piece : pieces_of(rank)) {
    const core::Parameter& parameter = parameters_[piece.parameter];
    for (const char* const kind : kinds_of(parameter)) {
      at::Tensor& all = whole.tensors[fmt::format("optimizer.{}.{}", kind, parameter.name)];
      if (!all.defined()) {
        all = empty_like(parameter, at::kCPU);
      }
      const at::Tensor place = bytes_of(in_memory_order(all).slice(0, piece.begin, piece.end));
      place.copy_(bytes.narrow(0, used, place.numel()));
      used += place.numel();
    }
  }
}

core::State ShardedOptimizer::whole_state() {
  const core::PhaseScope phase(core::Phase::kExchange);
  const at::NoGradGuard no_grad;
  core::State whole;
  const at::Tensor own = packed_state();
  if (ranks_->rank() > 0) {
    if (own.numel() > 0) {
      ranks_->send(own, 0);
    }
    return whole;
  }
  own_->save_state(whole);
  const at::Tensor steps = whole.tensors.contains("optimizer.step") ? whole.tensors.at("optimizer.step") : at::Tensor();
  whole.tensors.clear();
  if (steps.defined()) {
    whole.tensors["optimizer.step"] = steps;
  }
  unpack_state(own, 0, whole);
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    if (const std::int64_t bytes = packed_bytes(rank); bytes > 0) {
      at::Tensor theirs = at::empty({bytes}, at::kByte);
      ranks_->receive(theirs, rank);
      unpack_state(theirs, rank, whole);
    }
  }
  return whole;
}

void ShardedOptimizer::load_state(const core::State& state) {
  core::State own;
  own_->save_state(own);  // handles to the live tensors
  for (auto& [name, tensor] : own.tensors) {
    if (name == "optimizer.step") {
      core::restore_tensor(tensor, state, name);
    }
  }
  for (const Piece& piece : own_pieces_) {
    const core::Parameter& parameter = parameters_[piece.parameter];
    for (const char* const kind : kinds_of(parameter)) {
      const std::string name = fmt::format("optimizer.{}.{}", kind, parameter.name);
      // As the parameter lies in memory, whatever the order in the file.
      const at::Tensor all = empty_like(parameter, at::kCPU);
      core::restore_tensor(all, state, name);
      own.tensors.at(name).copy_(in_memory_order(all).slice(0, piece.begin, piece.end));
    }
  }
}

}  // namespace stoker::optim
