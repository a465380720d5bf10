// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/frame.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::memory {
namespace {

constexpr std::string_view kWhere = "memory.recompute";

// Ends a recomputation that has all that is needed. Not a std::exception: nobody else shall catch it.
struct Enough {};

// What operators save in a pass whose graph nobody keeps.
class Forgotten final : public SavedTensor {
 public:
  explicit Forgotten(const std::string& name) : name_(name) {}
  at::Tensor unpack() override {
    fail<ConfigError>(
        kWhere,
        "{} computes gradients in its own forward pass, so it cannot be recomputed; leave it out of recompute=", name_);
  }

 private:
  const std::string& name_;
};

}  // namespace

// Stands for a saved tensor in the graph.
class Frame::Dropped final : public SavedTensor {
 public:
  Dropped(std::shared_ptr<Frame> frame, std::size_t slot) : frame_(std::move(frame)), slot_(slot) {}
  ~Dropped() override { frame_->release(slot_); }
  Dropped(const Dropped&) = delete;
  Dropped& operator=(const Dropped&) = delete;
  at::Tensor unpack() override { return frame_->fetch(slot_); }

 private:
  std::shared_ptr<Frame> frame_;
  std::size_t slot_;
};

// The rule of the forward pass.
class Frame::Dropping final : public SavedTensorRule {
 public:
  explicit Dropping(Frame& frame) : frame_(frame) {}
  std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) override {
    if (frame_.stays(tensor)) {
      return keep_saved(tensor, frame_.part_->name);
    }
    const std::lock_guard lock(frame_.lock_);
    frame_.slots_.emplace_back(tensor);
    return std::make_unique<Dropped>(frame_.shared_from_this(), frame_.slots_.size() - 1);
  }

 private:
  Frame& frame_;
};

// The rule of a recomputation.
class Frame::Capturing final : public SavedTensorRule {
 public:
  explicit Capturing(Frame& frame) : frame_(frame) {}
  std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) override {
    if (!frame_.stays(tensor)) {
      const std::size_t at = next_++;
      frame_.check_alike(at, tensor);
      if (Slot& slot = frame_.slots_[at]; slot.needed && !slot.tensor.defined()) {
        slot.tensor = tensor.detach();
        slot.version = tensor._version();
        if (--frame_.missing_ == 0) {
          throw Enough();
        }
      }
    }
    return std::make_unique<Forgotten>(frame_.part_->name);
  }

 private:
  Frame& frame_;
  std::size_t next_ = 0;
};

core::TensorList Frame::run(std::shared_ptr<const FramePart> part, core::TensorList inputs) {
  const auto frame = std::make_shared<Frame>(part, inputs);
  std::vector<std::pair<at::Tensor, std::int64_t>> held;  // with their versions
  if (frame->holds_inputs_) {                             // else the part may free them
    for (const at::Tensor& each : inputs) {
      if (each.defined()) {
        held.emplace_back(each, each._version());
      }
    }
  }
  Dropping rule(*frame);
  core::TensorList outputs;
  {
    const SavedTensorScope scope(rule);
    outputs = part->forward(std::move(inputs));
  }
  frame->running_ = false;
  frame->storages_.clear();
  if (std::ranges::any_of(held, [](const auto& each) { return each.first._version() != each.second; })) {
    fail<ConfigError>(kWhere,
                      "{} changes one of its inputs in place, so it cannot be recomputed; change a copy, or leave it "
                      "out of recompute=",
                      part->name);
  }
  return outputs;
}

Frame::Frame(std::shared_ptr<const FramePart> part, const core::TensorList& inputs)
    : part_(std::move(part)),
      surroundings_(part_->device, part_->draws, part_->statistics),
      holds_inputs_(saved_tensor_rule() == nullptr),
      parameter_versions_(parameter_versions()) {
  SavedTensorRule* const around = saved_tensor_rule();
  const at::NoGradGuard no_grad;
  for (const at::Tensor& each : inputs) {
    inputs_take_gradients_.push_back(each.defined() && each.requires_grad());
    if (!each.defined()) {
      inputs_.push_back(nullptr);
    } else {
      inputs_.push_back(around == nullptr ? keep_saved(each, part_->name) : around->pack(each));
    }
  }
  note_inputs(inputs);
}

void Frame::note_inputs(const core::TensorList& inputs) {
  storages_.clear();
  for (const at::Tensor& each : inputs) {
    if (each.defined() && each.has_storage()) {
      // Weak: it keeps the address from being reused, but not the memory.
      storages_.emplace_back(each.storage().getWeakStorageImpl());
    }
  }
}

bool Frame::is_input(const at::Tensor& tensor) const {
  return tensor.has_storage() && std::ranges::any_of(storages_, [&](const auto& each) {
           return each._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl();
         });
}

// The same answer in the forward pass and in each recomputation, where the inputs are leaves.
bool Frame::stays(const at::Tensor& tensor) const {
  return is_input(tensor) ? holds_inputs_ : tensor.is_leaf() && tensor.requires_grad();
}

// Versions only grow, so an equal sum means that none changed.
std::int64_t Frame::parameter_versions() const {
  std::int64_t sum = 0;
  for (const at::Tensor& each : part_->parameters) {
    sum += each._version();
  }
  return sum;
}

core::TensorList Frame::unpack_inputs() {
  core::TensorList inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs.push_back(inputs_[i] == nullptr
                         ? at::Tensor()
                         : inputs_[i]->unpack().detach().set_requires_grad(inputs_take_gradients_[i]));
  }
  return inputs;
}

at::Tensor Frame::fetch(std::size_t slot) {
  const std::lock_guard lock(lock_);
  if (running_) {
    (void)Forgotten(part_->name).unpack();
  }
  if (!slots_[slot].tensor.defined()) {
    recompute();
  }
  at::Tensor tensor = std::exchange(slots_[slot].tensor, {});
  if (tensor._version() != slots_[slot].version) {
    fail<ConfigError>(kWhere, "{} changes in place a tensor that its gradient needs; change a copy instead",
                      part_->name);
  }
  return tensor;
}

void Frame::release(std::size_t slot) {
  const std::lock_guard lock(lock_);
  slots_[slot].needed = false;
  slots_[slot].tensor.reset();
}

void Frame::recompute() {
  if (parameter_versions() != parameter_versions_) {
    fail<ConfigError>(kWhere, "a parameter of {} was changed between its forward and its backward pass", part_->name);
  }
  core::TensorList inputs = unpack_inputs();
  missing_ = static_cast<std::size_t>(
      std::ranges::count_if(slots_, [](const Slot& each) { return each.needed && !each.tensor.defined(); }));
  note_inputs(inputs);
  {
    const SurroundingsScope then(surroundings_);
    Capturing rule(*this);
    const SavedTensorScope scope(rule);
    try {
      (void)part_->forward(std::move(inputs));
    } catch (const Enough&) {
    }
  }
  storages_.clear();
  if (missing_ > 0) {
    fail<ConfigError>(kWhere,
                      "{} saves fewer tensors when it is recomputed: its forward pass does not repeat itself; leave it "
                      "out of recompute=",
                      part_->name);
  }
}

void Frame::check_alike(std::size_t slot, const at::Tensor& tensor) const {
  if (slot >= slots_.size()) {
    fail<ConfigError>(kWhere,
                      "{} saves more tensors when it is recomputed: its forward pass does not repeat itself; leave it "
                      "out of recompute=",
                      part_->name);
  }
  const Slot& then = slots_[slot];
  if (tensor.sizes() != c10::IntArrayRef(then.sizes) || tensor.scalar_type() != then.dtype ||
      tensor.device() != then.device) {
    fail<ConfigError>(kWhere,
                      "{} saved {} {} on {}, but saves {} on {} when it is recomputed: its forward pass does not "
                      "repeat itself; leave it out of recompute=",
                      part_->name, core::dtype_name(then.dtype), c10::IntArrayRef(then.sizes), then.device.str(),
                      core::describe(tensor), tensor.device().str());
  }
}

}  // namespace stoker::memory
