// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/synced_norms.h"

#include "stoker/base/error.h"

namespace stoker::train {
namespace {

core::NormCount counted(const core::Trainable& model) {
  const core::NormCount count = model.norms_by_batch();
  if (count.norms == 0) {
    fail<ConfigError>("train.step",
                      "sync_bn=on needs batch norms of Stoker's own layers that learn their statistics, and this model "
                      "has none, or others besides; set sync_bn=off");
  }
  return count;
}

}  // namespace

SyncedNorms::SyncedNorms(core::Communicator& ranks, core::Trainable& model, at::Device device)
    : model_(model), ranks_(ranks.split(0)), exchange_(*ranks_, counted(model), device) {}

// A pass may have failed before end().
SyncedNorms::~SyncedNorms() { model_.synchronise_norms(nullptr); }

void SyncedNorms::begin(std::int64_t passes) {
  exchange_.begin(passes);
  model_.synchronise_norms(&exchange_);
}

void SyncedNorms::end() {
  model_.synchronise_norms(nullptr);
  exchange_.skip_rest();
}

}  // namespace stoker::train
