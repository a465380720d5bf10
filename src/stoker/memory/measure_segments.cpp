// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/measure_segments.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/device/backend.h"
#include "stoker/memory/saved_tensors.h"
#include "stoker/memory/surroundings.h"

namespace stoker::memory {
namespace {

using Forward = std::function<core::TensorList(core::TensorList)>;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

// Notes storages with their bytes, and keeps the tensors, so that no address is used again.
class Counting final : public SavedTensorRule {
 public:
  std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) override {
    if (const c10::StorageImpl* storage = storage_of(tensor); storage != nullptr) {
      saved.emplace(storage, static_cast<std::int64_t>(storage->nbytes()));
    }
    return keep_saved(tensor, "a measured segment");
  }
  std::map<const c10::StorageImpl*, std::int64_t> saved;
};

class Measurement {
 public:
  explicit Measurement(const core::Trainable& model) {
    for (const core::Parameter& each : model.parameters()) {
      known_.insert(storage_of(each.tensor));
      device_ = each.tensor.device();
    }
  }

  // Runs a segment or part, and replaces values, its inputs, by its outputs. What it saves is known afterwards.
  SegmentCost measure(std::string name, const Forward& forward, core::TensorList& values) {
    SegmentCost cost{.name = std::move(name)};
    for (const at::Tensor& each : values) {
      known_.insert(storage_of(each));
      held_.push_back(each);
    }
    Counting rule;
    const device::Backend& backend = device::backend_for(device_);
    backend.synchronize(device_);
    const Stopwatch watch;
    {
      const SavedTensorScope scope(rule);
      values = forward(std::move(values));
    }
    backend.synchronize(device_);
    cost.seconds = watch.seconds();
    for (const at::Tensor& each : values) {
      if (const c10::StorageImpl* storage = storage_of(each); known_.insert(storage).second) {
        cost.output_bytes += static_cast<std::int64_t>(storage->nbytes());
      }
    }
    for (const auto& [storage, bytes] : rule.saved) {
      cost.saved_bytes += known_.insert(storage).second ? bytes : 0;
    }
    return cost;
  }

 private:
  c10::Device device_ = c10::kCPU;
  std::set<const c10::StorageImpl*> known_{nullptr};  // that something else holds
  core::TensorList held_;                             // what entered the segments, with their graph
};

Forward part_of(core::Trainable& model, int segment, int part) {
  return [&model, segment, part](core::TensorList values) {
    return model.forward_inner(segment, part, std::move(values));
  };
}

}  // namespace

std::vector<SegmentCost> measure_segments(core::Trainable& model, core::TensorList values) {
  hook_saved_tensors();
  const Surroundings before(c10::kCPU, /*draws=*/false, model.norm_buffers());
  const SurroundingsScope scope(before);  // turns gradients on, and puts the statistics back
  Measurement whole(model), in_parts(model);
  std::vector<SegmentCost> costs;
  for (int segment = 0; segment < model.segments(); ++segment) {
    const Forward forward = [&](core::TensorList inputs) { return model.forward_segment(segment, std::move(inputs)); };
    core::TensorList part_values = values;
    costs.push_back(whole.measure(model.segment_name(segment), forward, values));
    const std::vector<std::string> parts = model.inner_segments(segment);
    for (int part = 0; part < std::ssize(parts); ++part) {
      costs.back().parts.push_back(
          in_parts.measure(parts[static_cast<std::size_t>(part)], part_of(model, segment, part), part_values));
    }
  }
  return costs;
}

}  // namespace stoker::memory
