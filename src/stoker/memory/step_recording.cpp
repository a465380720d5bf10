// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/step_recording.h"

#include <ATen/record_function.h>

#include <atomic>
#include <optional>

#include "stoker/base/fmt.h"
#include "stoker/device/allocations.h"
#include "stoker/device/backend.h"
#include "stoker/memory/allocation_log.h"
#include "stoker/memory/mark.h"

namespace stoker::memory {
namespace {

// The operators that this thread is in, outermost first. Threads of autograd inherit the callbacks of the thread that
// steps, so what they allocate belongs to the step, too.
thread_local std::vector<std::string> t_operators;

// An operator's name without "aten::"; empty for what says nothing.
std::string plain_name(std::string_view name) {
  constexpr std::string_view kAten = "aten::", kEvaluate = "autograd::engine::evaluate_function";
  if (name.starts_with(kEvaluate) || name.starts_with("step.") || name.starts_with("Optimizer.step")) {
    return "";
  }
  return std::string(name.starts_with(kAten) ? name.substr(kAten.size()) : name);
}

// The innermost operators, without those that only get memory for another one.
std::string made_by() {
  constexpr std::size_t kShown = 3;
  std::vector<std::string_view> shown;
  for (auto each = t_operators.rbegin(); each != t_operators.rend() && shown.size() < kShown; ++each) {
    const bool helper = each->starts_with("empty") || each->starts_with("new_empty") || each->starts_with("resize");
    if (!each->empty() && !(helper && each != t_operators.rend() - 1) && (shown.empty() || shown.front() != *each)) {
      shown.insert(shown.begin(), *each);
    }
  }
  return fmt::format("{}", fmt::join(shown, " > "));
}

// Never destroyed: a thread may still be in a call when it no longer listens.
class Recorder final : public device::AllocationListener {
 public:
  static Recorder& instance() {
    static auto* const recorder = new Recorder;
    return *recorder;
  }

  bool start(c10::Device device) {
    if (!device::can_hear_allocations(device) || listening_.exchange(true)) {
      return false;
    }
    const std::lock_guard lock(log_mutex_);
    device_ = device;
    log_.emplace(device::backend_for(device).allocated(device));
    phase_ = &core::t_phase;
    if (device::AllocationListener* const other = device::listen_to_allocations(device, this)) {
      device::listen_to_allocations(device, other);
      listening_ = false;
      return false;
    }
    t_operators.clear();
    callback_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Recorder::enter, &Recorder::leave)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
    recording_ = true;
    return true;
  }
  void end_step() {
    if (recording_.exchange(false)) {
      at::removeCallback(callback_);
    }
  }
  void stop() {
    end_step();
    if (listening_.exchange(false)) {
      device::AllocationListener* const last = device::listen_to_allocations(device_, nullptr);
      if (last != this && last != nullptr) {  // somebody else came in between
        device::listen_to_allocations(device_, last);
      }
    }
  }
  // work(log), alone.
  template <typename Work>
  auto with_log(const Work& work) {
    const std::lock_guard lock(log_mutex_);
    return work(*log_);
  }
  [[nodiscard]] bool recording() const { return recording_.load(std::memory_order_relaxed); }
  [[nodiscard]] c10::Device device() const { return device_; }

 private:
  // An allocation that cannot be noted makes the totals wrong, so the log is told.
  void made(const void* data, std::size_t bytes) noexcept override {
    if (!recording()) {
      return;
    }
    const bool of_step = phase_ == &core::t_phase || !t_operators.empty();
    const core::Phase phase = core::memory_phase(of_step ? *phase_ : core::t_phase);
    try {
      const std::string by = made_by();
      const std::lock_guard lock(log_mutex_);
      log_->made(data, static_cast<std::int64_t>(bytes), {phase, of_step, by});
    } catch (...) {
    }
  }
  void freed(const void* data, std::size_t bytes) noexcept override {
    const bool of_step = phase_ == &core::t_phase || !t_operators.empty();
    try {
      const std::lock_guard lock(log_mutex_);
      log_->freed(data, static_cast<std::int64_t>(bytes), core::memory_phase(of_step ? *phase_ : core::t_phase),
                  of_step, recording());
    } catch (...) {
    }
  }

  static std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& call) {
    t_operators.push_back(plain_name(call.name()));
    return nullptr;
  }
  static void leave(const at::RecordFunction& call, at::ObserverContext*) {
    Recorder& self = instance();
    for (const c10::IValue& output : call.outputs()) {
      if (output.isTensor()) {
        self.note(output.toTensor());
      } else if (output.isTensorList()) {
        for (const at::Tensor& each : output.toTensorVector()) {
          self.note(each);
        }
      }
    }
    if (!t_operators.empty()) {  // else it began before the recording
      t_operators.pop_back();
    }
  }
  void note(const at::Tensor& tensor) {
    if (!recording() || !tensor.defined() || !tensor.has_storage()) {
      return;
    }
    const std::lock_guard lock(log_mutex_);
    log_->returned(tensor.storage().data(), tensor);
    if (const auto& node = tensor.grad_fn()) {
      log_->add_node(node, made_by());
    }
  }

  std::mutex log_mutex_;
  std::optional<AllocationLog> log_;
  std::atomic<bool> recording_ = false, listening_ = false;
  const core::Phase* phase_ = nullptr;  // of the thread that steps, which waits when others work for it
  c10::Device device_{c10::kCPU};
  at::CallbackHandle callback_ = 0;
};

Recorder& recorder() { return Recorder::instance(); }

}  // namespace

void mark(std::string_view name) {
  if (recorder().recording()) {
    recorder().with_log([&](AllocationLog& log) { log.mark(std::string(name)); });
  }
}

StepRecording::StepRecording(c10::Device device) : active_(recorder().start(device)) {}

StepRecording::~StepRecording() {
  if (active_) {
    recorder().stop();
  }
}

void StepRecording::own(Category category, const at::Tensor& tensor) {
  if (active_ && tensor.defined() && tensor.has_storage() && device::is_heard(tensor.storage(), recorder().device())) {
    recorder().with_log([&](AllocationLog& log) {
      log.own(category, tensor.storage().data(), static_cast<std::int64_t>(tensor.storage().nbytes()));
    });
  }
}

StepRecord StepRecording::finish() {
  if (!active_) {
    return {};
  }
  recorder().end_step();
  return recorder().with_log([](const AllocationLog& log) { return log.record(); });
}

Leftovers StepRecording::leftovers() const {
  return active_ ? recorder().with_log([](const AllocationLog& log) { return log.leftovers(); }) : Leftovers();
}

}  // namespace stoker::memory
