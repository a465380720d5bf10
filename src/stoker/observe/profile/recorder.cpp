// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/recorder.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/cuda_library.h"
#include "stoker/observe/profile/gzip_file.h"

namespace stoker::observe::profile {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

constexpr std::string_view kWhere = "observe.profile";

// libkineto's numbers of kinds (ActivityType.h, which the wheel lacks).
enum Activity : std::uint8_t { kOperator = 0, kAnnotation = 1, kDeviceCopy = 3, kDeviceFill = 4, kKernel = 5 };

// Shapes, memory, no stacks. FLOPs are counted by call_work.h: Kineto's own count warns where it cannot.
ProfilerConfig config() {
  return ProfilerConfig(ProfilerState::KINETO, /*report_input_shapes=*/true, /*profile_memory=*/true);
}

std::set<ActivityType> activities(c10::Device device) {
  return device.is_cuda() ? std::set<ActivityType>{ActivityType::CPU, ActivityType::CUDA}
                          : std::set<ActivityType>{ActivityType::CPU};
}

std::vector<std::vector<std::int64_t>> numbers_of(c10::ArrayRef<c10::IValue> values) {
  std::vector<std::vector<std::int64_t>> result;
  for (const c10::IValue& value : values) {
    auto& numbers = result.emplace_back();
    if (value.isInt()) {
      numbers = {value.toInt()};
    } else if (value.isBool()) {
      numbers = {value.toBool() ? 1 : 0};
    } else if (value.isIntList()) {
      numbers = value.toIntVector();
    } else if (value.isBoolList()) {
      for (const bool each : value.toBoolList()) {
        numbers.push_back(each ? 1 : 0);
      }
    }
  }
  return result;
}

Call call_of(const kineto::KinetoEvent& event, std::string name) {
  Call call{.name = std::move(name),
            .begin = static_cast<std::int64_t>(event.startNs()),
            .end = static_cast<std::int64_t>(event.endNs()),
            .thread = event.startThreadId(),
            .id = event.correlationId(),
            .range = event.activityType() == kAnnotation};
  if (event.hasShapes()) {
    call.shapes = event.shapes().vec();
    call.types = event.dtypes().vec();
  }
  if (event.hasConcreteInputs()) {
    call.numbers = numbers_of(event.concreteInputs());
  }
  return call;
}

Recorded recorded_from(const kineto::ProfilerResult& result) {
  Recorded recorded;
  for (const kineto::KinetoEvent& event : result.events()) {
    std::string name = event.name();
    const auto begin = static_cast<std::int64_t>(event.startNs()), end = static_cast<std::int64_t>(event.endNs());
    const bool on_host = event.deviceType() == c10::DeviceType::CPU;
    if (name == "[memory]") {
      recorded.allocations.push_back({begin, event.nBytes(), event.startThreadId(), on_host});
    } else if (on_host && (event.activityType() == kOperator || event.activityType() == kAnnotation)) {
      recorded.calls.push_back(call_of(event, std::move(name)));
      if (is_step(recorded.calls.back())) {
        recorded.thread = event.startThreadId();
        recorded.steps_ns.push_back(end - begin);
      }
    } else if (!on_host && event.activityType() >= kDeviceCopy && event.activityType() <= kKernel) {
      recorded.work.push_back({std::move(name), begin, end, event.deviceResourceId(), event.linkedCorrelationId()});
    }
  }
  return recorded;
}

// Whether a file ends as Kineto's traces do: only the brace of the whole object begins a line.
bool is_whole(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, 16> end{};
  in.seekg(0, std::ios::end);
  const auto size = std::min<std::streamoff>(in.tellg(), end.size());
  in.seekg(-size, std::ios::end);
  in.read(end.data(), size);
  const std::string_view text(end.data(), static_cast<std::size_t>(in.gcount()));
  const auto last = text.find_last_not_of('\n');
  return last != text.npos && text.substr(0, last + 1).ends_with("\n}");
}

// Kineto itself says nothing about a file that it cannot write or that ends too early.
void save(kineto::ProfilerResult& result, const std::filesystem::path& path) {
  const std::filesystem::path plain = path.native() + ".json";
  if (std::ofstream(plain).fail()) {
    fail<IoError>(kWhere, "{}: the trace cannot be written: {}", printable(path.native()), std::strerror(errno));
  }
  result.save(plain.native());
  if (!is_whole(plain)) {
    std::error_code ignored;
    std::filesystem::remove(plain, ignored);
    std::filesystem::remove(plain.native() + ".tmp", ignored);  // Kineto's, which it then renames
    fail<IoError>(kWhere, "{}: the trace could not be written to its end; is the disk full?", printable(path.native()));
  }
  gzip_file(plain, path);
}

}  // namespace

struct Recorder::State {
  explicit State(c10::Device on) : device(on) {}
  c10::Device device;
  bool running = false;
  std::optional<at::RecordFunction> step;
};

Recorder::Recorder(c10::Device device) : state_(std::make_unique<State>(device)) {
  if (torch::profiler::impl::profilerEnabled()) {
    fail<ConfigError>(kWhere, "another profiler records this thread; end it, and set nvtx=off if it is on");
  }
  enable();
}

Recorder::~Recorder() {
  state_->step.reset();
  if (state_->running) {
    try {
      (void)kineto::disableProfiler();
    } catch (const std::exception&) {  // the records are not used
    }
  }
}

void Recorder::start() {
  state_->running = false;
  device::leave_driver_after_recording(false);  // the next one begins
  (void)kineto::disableProfiler();
  device::leave_driver_after_recording(true);
  enable();
}

void Recorder::enable() {
  kineto::prepareProfiler(config(), activities(state_->device));
  kineto::enableProfiler(config(), activities(state_->device),
                         {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
  state_->running = true;
}

void Recorder::begin_step(std::int64_t number) {
  state_->step.emplace(at::RecordScope::USER_SCOPE);
  state_->step->before(kStepName + std::to_string(number));
}

void Recorder::end_step() { state_->step.reset(); }

Recorded Recorder::finish(const std::filesystem::path& path) {
  end_step();
  device::backend_for(state_->device).synchronize(state_->device);  // otherwise its last kernels would be missing
  state_->running = false;
  const auto result = kineto::disableProfiler();
  save(*result, path);
  return recorded_from(*result);
}

}  // namespace stoker::observe::profile
