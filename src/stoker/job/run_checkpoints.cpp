// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_checkpoints.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/model_card.h"
#include "stoker/job/weight_histograms.h"

namespace stoker::job {
namespace {

// The metric on the card that made it the best; none without a checkpoint "best", or if it was never evaluated.
std::optional<core::MetricValue> best_in(const io::CheckpointStore& store) {
  if (!store.has("best")) {
    return std::nullopt;
  }
  const std::filesystem::path path = store.path("best");
  ModelCard card;
  read_card(path, [&] { card = card_from_json(io::load_info(path), path); });
  return std::isnan(card.metric_value) ? std::nullopt
                                       : std::optional(core::MetricValue{card.metric, card.metric_value});
}

// Whether a step changes it. Constants, such as an attention mask, may contain infinities.
bool is_constant(const core::NamedTensor& buffer, const core::TensorList& changing) {
  return std::ranges::none_of(changing, [&](const at::Tensor& flat) { return buffer.tensor.is_alias_of(flat); });
}

// The first tensor with a NaN or, unless it is constant, an infinity; empty: none.
std::string first_broken(const io::Checkpoint& checkpoint, const core::Trainable& model) {
  std::set<std::string> constants;
  for (const core::NamedTensor& buffer : model.buffers()) {
    if (is_constant(buffer, model.norm_buffers())) {
      constants.insert({buffer.name, "model." + buffer.name});  // among the weights, and in the state
    }
  }
  for (const auto* tensors : {&checkpoint.weights, &checkpoint.state.tensors}) {
    for (const auto& [name, tensor] : *tensors) {
      if (tensor.is_floating_point() &&
          (constants.contains(name) ? at::isnan(tensor) : at::isfinite(tensor).logical_not_()).any().item<bool>()) {
        return name;
      }
    }
  }
  return "";
}

}  // namespace

RunCheckpoints::RunCheckpoints(const RunFolder& run, const Setup& setup, Session& session, io::EventBus& bus)
    : run_(run), setup_(setup), session_(session), bus_(bus), store_(run.checkpoints()) {
  try {
    best_before_ = best_in(store_);
  } catch (const CheckpointError& error) {
    bus_.emit(core::Finding{fmt::format("the existing best checkpoint is ignored: {}", error.what())});
  }
}

void RunCheckpoints::save(const std::string& kind) {
  if (kind != "best" || !best_is_better()) {
    write(kind, session_.checkpoint(kind));
  }
}

bool RunCheckpoints::best_is_better() const {
  const core::MetricValue& newest = session_.newest_metrics().front();
  if (!best_before_ || best_before_->name != newest.name) {
    return false;
  }
  return newest.higher_is_better ? best_before_->value > newest.value : best_before_->value < newest.value;
}

void RunCheckpoints::write(const std::string& kind, const io::Checkpoint& checkpoint) {
  bus_.flush();  // if the run is killed from here on, the logs have the rows of all steps in the checkpoint
  store_.save(kind, checkpoint);
  const std::int64_t step = session_.progress().step;
  std::optional<core::WeightHistograms> histograms;  // made before anything is told, as a failed save is made again
  if (setup_.plan.tensorboard == "histograms" && kind == "last") {
    histograms = weight_histograms(*setup_.model, step);
  }
  bus_.emit(core::CheckpointSaved{step, store_.path(kind).native(), kind});
  if (histograms) {
    bus_.emit(*std::move(histograms));
  }
}

void RunCheckpoints::rescue() {
  const io::Checkpoint last = session_.checkpoint("last");
  const std::int64_t step = session_.progress().step;
  if (const std::string broken = first_broken(last, *setup_.model); !broken.empty()) {
    bus_.emit(core::Finding{fmt::format("step {} is not saved: {} is not finite", step, printable(broken))});
    return;
  }
  write("last", last);
  bus_.emit(core::Finding{fmt::format("step {} was saved before the error; `stoker resume {}` continues from there",
                                      step, printable(run_.path().native()))});
}

std::vector<core::MetricValue> RunCheckpoints::best() const {
  if (!session_.best_metrics().empty() || !best_before_) {
    return session_.best_metrics();
  }
  return {*best_before_};
}

}  // namespace stoker::job
