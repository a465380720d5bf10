// SPDX-License-Identifier: Apache-2.0
// Pipelines over ranks: which segments of the model this rank computes, with which ranks it exchanges what, and how the
// stages give each other what they have computed. Neighbouring ranks are one pipeline; with more ranks there are
// several of them, replicas, which share each batch. Made by job::Session; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/stateful.h"
#include "stoker/core/trainable.h"

namespace stoker::parallel {

class Stages {
 public:
  // A collective call. firsts: the first segment of each stage but the first one, ascending; so there are
  // firsts.size() + 1 stages. Ranks and model outlive it. ConfigError if the ranks are no whole number of pipelines, if
  // the segments are no cut of the model, if a parameter is used in two stages, or if it is not known which stage
  // computes a running statistic.
  Stages(core::Communicator& ranks, const core::Trainable& model, const std::vector<int>& firsts);

  [[nodiscard]] int stage() const { return stage_; }
  [[nodiscard]] int count() const { return static_cast<int>(bounds_.size()) - 1; }
  // Segments first() ... last() - 1 are this rank's.
  [[nodiscard]] int first() const { return bounds_[static_cast<std::size_t>(stage_)]; }
  [[nodiscard]] int last() const { return bounds_[static_cast<std::size_t>(stage_) + 1]; }
  // The stages of this rank's pipeline, in the order of the chain.
  [[nodiscard]] core::Communicator& pipeline() { return *pipeline_; }
  // The ranks that compute the same segments in other pipelines: gradients are sums over them.
  [[nodiscard]] core::Communicator& replicas() { return *replicas_; }
  // The parameters of this rank's segments.
  [[nodiscard]] const std::vector<core::Parameter>& own_parameters() const { return own_parameters_; }
  // For each floating-point norm buffer of the model, in order: which elements this rank's segments compute. bool, of
  // the buffer's shape.
  [[nodiscard]] const std::vector<at::Tensor>& own_statistics() const { return own_statistics_; }

  // Each stage gives the others what its segments have: afterwards all ranks of a pipeline have the same values. A
  // collective call. parameters, norm_buffers: as many as the model has and in its order, e.g. the model's own.
  void share(const core::TensorList& parameters, const core::TensorList& norm_buffers);
  // The tensors of all stages on the first one, elsewhere nothing; beyond caps of memory. A collective call.
  [[nodiscard]] core::State collect(core::State own);

 private:
  // A part of a norm buffer that one module's statistics take.
  struct Statistic {
    std::size_t buffer = 0;  // of the model's norm buffers
    std::int64_t begin = 0, numel = 0;
    int stage = 0;
  };
  [[nodiscard]] int stage_of(const core::Parameter& parameter) const;
  void find_statistics(const core::Trainable& model);
  void broadcast(const core::TensorList& tensors, int stage);

  std::vector<int> bounds_;  // where stages begin, and the number of segments
  int stage_;
  std::unique_ptr<core::Communicator> pipeline_, replicas_;
  std::vector<int> parameter_stages_;  // of each parameter of the model
  std::vector<core::Parameter> own_parameters_;
  std::vector<Statistic> statistics_;
  std::vector<at::Tensor> own_statistics_;
};

}  // namespace stoker::parallel
