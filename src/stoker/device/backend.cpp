// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/backend.h"

#include <map>
#include <mutex>

#include "stoker/base/error.h"
#include "stoker/device/backend_cpu.h"

namespace stoker::device {
namespace {

class Backends final : public Registry {
 public:
  Backends() { backends_[c10::DeviceType::CPU] = make_cpu_backend(); }

  void offer(c10::DeviceType kind, std::unique_ptr<Backend> backend) override {
    const std::lock_guard lock(mutex_);
    backends_[kind] = std::move(backend);
    reasons_.erase(kind);
  }
  void offer_function(std::string name, AnyFunction function) override {
    const std::lock_guard lock(mutex_);
    functions_.insert_or_assign(std::move(name), function);
  }
  AnyFunction find_function(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }
  void refuse(c10::DeviceType kind, std::string reason) override {
    const std::lock_guard lock(mutex_);
    reasons_[kind] = std::move(reason);
  }
  Backend* find(c10::DeviceType kind) const {
    const std::lock_guard lock(mutex_);
    const auto found = backends_.find(kind);
    return found == backends_.end() ? nullptr : found->second.get();
  }
  std::string reason(c10::DeviceType kind) const {
    const std::lock_guard lock(mutex_);
    const auto found = reasons_.find(kind);
    if (found != reasons_.end()) {
      return found->second;
    }
    return kind == c10::DeviceType::CUDA ? "load_cuda() was not called" : "Stoker supports cpu and cuda";
  }

 private:
  mutable std::mutex mutex_;
  std::map<c10::DeviceType, std::unique_ptr<Backend>> backends_;  // entries are never removed: callers hold references
  std::map<c10::DeviceType, std::string> reasons_;
  std::map<std::string, AnyFunction, std::less<>> functions_;
};

// Never destroyed: at exit the driver may be gone already, and destroying CUDA objects would then crash.
Backends& backends() {
  static auto* const instance = new Backends;
  return *instance;
}

}  // namespace

Registry& registry() { return backends(); }

AnyFunction find_function(std::string_view name) { return backends().find_function(name); }

Backend* find_backend(c10::DeviceType kind) { return backends().find(kind); }

Backend& backend_for(c10::Device device) {
  Backend* backend = find_backend(device.type());
  if (backend == nullptr) {
    fail<DeviceError>("device.backend", "no {}: {}; use device=cpu", c10::DeviceTypeName(device.type()),
                      missing_reason(device.type()));
  }
  return *backend;
}

std::string missing_reason(c10::DeviceType kind) {
  return find_backend(kind) != nullptr ? "" : backends().reason(kind);
}

}  // namespace stoker::device
