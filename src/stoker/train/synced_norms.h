// SPDX-License-Identifier: Apache-2.0
// Batch norms of a model over the samples of all ranks, for the passes of a step. Used by train::Step; one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/core/communicator.h"
#include "stoker/core/norm_exchange.h"
#include "stoker/core/trainable.h"

namespace stoker::train {

class SyncedNorms {
 public:
  // A collective call. ranks and model outlive it. ConfigError for a model without batch norms that can be
  // synchronised.
  SyncedNorms(core::Communicator& ranks, core::Trainable& model, at::Device device);

  ~SyncedNorms();
  SyncedNorms(const SyncedNorms&) = delete;
  SyncedNorms& operator=(const SyncedNorms&) = delete;

  // The passes of a step begin: as many on all ranks.
  void begin(std::int64_t passes);
  // A pass of which this rank has no samples.
  void skip_pass() { exchange_.skip_pass(); }
  // The passes have ended, or failed: this rank takes part in what is left of them.
  void end();

 private:
  core::Trainable& model_;
  std::unique_ptr<core::Communicator> ranks_;  // over connections of their own: sums of gradients go on beside
  core::NormExchange exchange_;
};

}  // namespace stoker::train
