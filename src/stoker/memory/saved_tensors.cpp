// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/saved_tensors.h"

#include <dlfcn.h>
#include <torch/csrc/autograd/engine.h>

#include <string>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::memory {
namespace {

thread_local SavedTensorRule* current_rule = nullptr;

// torch's hooks of one saved tensor.
class Hooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(SavedTensorRule& rule) : rule_(rule) {}
  void call_pack_hook(const at::Tensor& tensor) override { saved_ = rule_.pack(tensor); }  // once, within the scope
  at::Tensor call_unpack_hook() override { return saved_->unpack(); }

 private:
  SavedTensorRule& rule_;
  std::unique_ptr<SavedTensor> saved_;
};

// torch asks its engine for the hooks of each tensor that it saves, on any thread.
class HookedEngine final : public torch::autograd::Engine {
 public:
  // Its threads may wait for work when the process ends, so it is never destroyed.
  static torch::autograd::Engine& instance() {
    static auto* const engine = [] {
      auto* const made = new HookedEngine;
      made->start_threads();
      return made;
    }();
    return *engine;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return current_rule == nullptr ? nullptr : std::make_unique<Hooks>(*current_rule);
  }

 private:
  HookedEngine() = default;
  // torch starts the threads of devices for the first engine of a process only. If that was another one, ours has none,
  // and no backward pass on a GPU would run.
  void start_threads() {
    initialize_device_threads_pool();
    if (thread_pool_shared_ == nullptr) {
      start_device_threads();
    }
  }
};

bool python_runs() {
  void* const symbol = ::dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  return symbol != nullptr && reinterpret_cast<int (*)()>(symbol)() != 0;
}

class Kept final : public SavedTensor {
 public:
  Kept(at::Tensor tensor, std::string what)
      : tensor_(std::move(tensor)), version_(tensor_._version()), what_(std::move(what)) {}
  at::Tensor unpack() override {
    if (tensor_._version() != version_) {
      fail<ConfigError>("memory.saved_tensors",
                        "a tensor that the gradient of {} needs was changed in place after the forward pass; change a "
                        "copy instead",
                        what_);
    }
    return tensor_;
  }

 private:
  at::Tensor tensor_;
  std::int64_t version_;
  std::string what_;
};

}  // namespace

void hook_saved_tensors() {
  static const bool done = [] {
    if (python_runs()) {
      fail<ConfigError>("memory.saved_tensors",
                        "this process runs Python, whose torch module has its own hooks for saved tensors; set "
                        "recompute=none, or use torch.utils.checkpoint");
    }
    torch::autograd::set_default_engine_stub(&HookedEngine::instance);
    return true;
  }();
  (void)done;
}

SavedTensorScope::SavedTensorScope(SavedTensorRule& rule) : outer_(std::exchange(current_rule, &rule)) {}

SavedTensorScope::~SavedTensorScope() { current_rule = outer_; }

SavedTensorRule* saved_tensor_rule() { return current_rule; }

std::unique_ptr<SavedTensor> keep_saved(const at::Tensor& tensor, std::string what) {
  // A leaf has no graph, and torch finds the place of its gradient by itself.
  return std::make_unique<Kept>(tensor.is_leaf() ? tensor : tensor.detach(), std::move(what));
}

}  // namespace stoker::memory
