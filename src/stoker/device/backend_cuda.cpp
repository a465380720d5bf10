// SPDX-License-Identifier: Apache-2.0
// The CUDA backend and its registration. Part of libstoker_cuda: uses only headers of Stoker, since functions of the
// executable are not visible here.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "stoker/base/error.h"
#include "stoker/core/guarded_memory.h"
#include "stoker/device/copy_stream.h"
#include "stoker/device/cuda_entry.h"
#include "stoker/device/step_kernels_cuda.h"

namespace stoker::device {
namespace {

// Throws DeviceError with the name of the call.
void check(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess) {
    fail<DeviceError>("device.cuda", "{} failed: {}", call, cudaGetErrorString(status));
  }
}

// The sum over both pools of the allocator.
constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

class CudaEvent final : public Event {
 public:
  // By default a waiting thread spins, which would take a core from the loader.
  CudaEvent(c10::DeviceIndex device, bool timing)
      : device_(device),
        timing_(timing),
        event_(timing ? cudaEventDefault : cudaEventBlockingSync | cudaEventDisableTiming) {}

  void record() override { event_.record(c10::cuda::getCurrentCUDAStream(device_)); }
  void wait() const override { event_.synchronize(); }
  bool ready() const override { return event_.query(); }
  // On a stream other than the current one.
  void record(const c10::cuda::CUDAStream& stream) { event_.record(stream); }
  // Later work on the stream begins after the mark.
  void hold_back(const c10::cuda::CUDAStream& stream) { event_.block(stream); }
  double elapsed_ms(const Event& earlier) const override {
    const auto* start = dynamic_cast<const CudaEvent*>(&earlier);
    if (start == nullptr || !start->timing_ || !timing_ || !start->event_.isCreated() || !event_.isCreated()) {
      fail<DeviceError>(
          "device.event",
          "both events must belong to CUDA, be made with timing and be recorded before elapsed_ms() is called");
    }
    start->wait();
    wait();
    return start->event_.elapsed_time(event_);
  }

 private:
  c10::DeviceIndex device_;
  bool timing_;
  c10::cuda::CUDAEvent event_;
};

class CudaCopyStream final : public CopyStream {
 public:
  explicit CudaCopyStream(const c10::cuda::CUDAStream& stream) : device_(stream.device_index()), stream_(stream) {}

  at::Tensor copy(const at::Tensor& host) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    return core::guarded(host.to(c10::Device(c10::DeviceType::CUDA, device_), /*non_blocking=*/true));
  }
  at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) override {  // torch's cache tracks its copies
    return core::guarded(at::empty(sizes, at::TensorOptions(type).pinned_memory(true)));
  }
  at::Tensor room(std::int64_t bytes) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    return core::guarded(
        at::empty({bytes}, at::TensorOptions(at::kByte).device(c10::Device(c10::DeviceType::CUDA, device_))));
  }
  void copy(const at::Tensor& host, const at::Tensor& there) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    there.copy_(host, /*non_blocking=*/true);
  }
  std::unique_ptr<Event> mark(bool timing) override {
    const c10::cuda::CUDAGuard guard(device_);
    auto event = std::make_unique<CudaEvent>(device_, timing);
    event->record(stream_);
    return event;
  }
  void await(Event& copied) override {
    dynamic_cast<CudaEvent&>(copied).hold_back(c10::cuda::getCurrentCUDAStream(device_));
  }
  void used_here(const at::Tensor& copied) override {
    const c10::DataPtr* const memory = core::guarded_memory(copied);  // from copy() or room()
    c10::cuda::CUDACachingAllocator::recordStream(*memory, c10::cuda::getCurrentCUDAStream(device_));
  }

 private:
  c10::DeviceIndex device_;
  c10::cuda::CUDAStream stream_;
};

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  int device_count() const override { return c10::cuda::device_count(); }
  c10::Device default_device() const override { return {c10::DeviceType::CUDA, 0}; }

  MemoryFigures memory(c10::Device device) const override {
    const c10::DeviceIndex index = resolved(device);
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index);
    const c10::cuda::CUDAGuard guard(index);
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    MemoryFigures figures;
    figures.allocated = stats.allocated_bytes[kAll].current;
    figures.reserved = stats.reserved_bytes[kAll].current;
    figures.peak = stats.allocated_bytes[kAll].peak;
    figures.free = static_cast<std::int64_t>(free);
    figures.total = static_cast<std::int64_t>(total);
    figures.free += figures.reserved - figures.allocated;  // the cache is ours to use again
    return figures;
  }

  std::int64_t allocated(c10::Device device) const override {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(resolved(device)).allocated_bytes[kAll].current;
  }

  std::int64_t retries(c10::Device device) const override {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(resolved(device)).num_alloc_retries;
  }

  void reset_peak(c10::Device device) const override {
    c10::cuda::CUDACachingAllocator::resetPeakStats(resolved(device));
  }

  void limit_memory(c10::Device device, std::int64_t bytes) const override {
    if (bytes > 0) {
      release_cache(device);  // the limit holds for memory that is taken from now on, not for what the cache has
    }
    const auto total = static_cast<double>(memory(device).total);
    const double share = bytes > 0 ? std::min(1.0, static_cast<double>(bytes) / total) : 1.0;
    c10::cuda::CUDACachingAllocator::setMemoryFraction(share, resolved(device));
  }

  void release_cache(c10::Device) const override { c10::cuda::CUDACachingAllocator::emptyCache(); }

  void synchronize(c10::Device device) const override {
    const c10::cuda::CUDAGuard guard(resolved(device));
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::unique_ptr<Event> make_event(c10::Device device, bool timing) const override {
    return std::make_unique<CudaEvent>(resolved(device), timing);
  }

  std::unique_ptr<CopyStream> make_copy_stream(c10::Device device) const override {
    const std::lock_guard lock(mutex_);
    const c10::DeviceIndex index = resolved(device);
    auto found = copy_streams_.find(index);
    if (found == copy_streams_.end()) {
      found = copy_streams_.emplace(index, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)).first;
    }
    return std::make_unique<CudaCopyStream>(found->second);
  }

  void divide_terms(const core::LossWork& work, c10::Device device) const override {
    const c10::cuda::CUDAGuard guard(resolved(device));
    check(static_cast<cudaError_t>(launch_divide_terms(work, stream(device))), "starting the loss kernel");
  }
  void decide(const core::VerdictWork& work, c10::Device device) const override {
    const c10::cuda::CUDAGuard guard(resolved(device));
    check(static_cast<cudaError_t>(launch_verdict(work, stream(device))), "starting the verdict kernel");
  }

  DeviceFacts describe(c10::Device device) const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, resolved(device)), "cudaGetDeviceProperties");
    int driver = 0;
    int runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    DeviceFacts facts;
    facts.name = properties.name;
    facts.driver = fmt::format("CUDA {} driver, runtime {}", version_text(driver), version_text(runtime));
    facts.compute_capability = fmt::format("{}.{}", properties.major, properties.minor);
    facts.cores = properties.multiProcessorCount;
    facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    facts.fast_bf16 = properties.major >= 8;
    return facts;
  }

  std::string bus_id(c10::Device device) const override {
    std::array<char, 32> text{};
    check(cudaDeviceGetPCIBusId(text.data(), text.size(), resolved(device)), "cudaDeviceGetPCIBusId");
    return text.data();
  }

 private:
  // "cuda" without a number is the current device.
  static c10::DeviceIndex resolved(c10::Device device) {
    return device.has_index() ? device.index() : c10::cuda::current_device();
  }
  static cudaStream_t stream(c10::Device device) { return c10::cuda::getCurrentCUDAStream(resolved(device)).stream(); }

  mutable std::mutex mutex_;
  // One per device: torch reuses freed memory only for the stream that it was allocated on.
  mutable std::map<c10::DeviceIndex, c10::cuda::CUDAStream> copy_streams_;
};

// Empty if CUDA is usable.
std::string why_unusable() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    if (driver == 0) {
      return "no NVIDIA driver found";
    }
    return fmt::format("the driver is too old for CUDA {}: it supports CUDA {}; install a newer NVIDIA driver",
                       version_text(CUDART_VERSION), version_text(driver));
  }
  if (status != cudaSuccess) {
    return fmt::format("the CUDA runtime does not start: {}", cudaGetErrorString(status));
  }
  return devices > 0 ? "" : "the driver sees no GPU";
}

}  // namespace
}  // namespace stoker::device

extern "C" __attribute__((visibility("default"))) void stoker_cuda_register(stoker::device::Registry& registry);

void stoker_cuda_register(stoker::device::Registry& registry) {
  for (const auto* each = stoker::device::CudaFunction::first; each != nullptr; each = each->next) {
    registry.offer_function(each->name, each->function);
  }
  std::string reason = stoker::device::why_unusable();
  if (reason.empty()) {
    try {
      at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);  // creates the caching allocator
      registry.offer(c10::DeviceType::CUDA, std::make_unique<stoker::device::CudaBackend>());
      return;
    } catch (const std::exception& error) {
      reason = fmt::format("torch cannot start CUDA: {}", error.what());
    }
  }
  registry.refuse(c10::DeviceType::CUDA, std::move(reason));
}
