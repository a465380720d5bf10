// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/backend_cpu.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/core/step_work.h"
#include "stoker/device/copy_stream.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/host_memory.h"
#include "stoker/device/process_facts.h"

namespace stoker::device {
namespace {

class CpuEvent final : public Event {
 public:
  explicit CpuEvent(bool timing) : timing_(timing) {}
  void record() override { moment_ = now_s(); }
  void wait() const override {}
  bool ready() const override { return true; }
  double elapsed_ms(const Event& earlier) const override {
    const auto* start = dynamic_cast<const CpuEvent*>(&earlier);
    if (start == nullptr || !start->timing_ || !timing_ || start->moment_ < 0 || moment_ < 0) {
      fail<DeviceError>(
          "device.event",
          "both events must belong to the CPU, be made with timing and be recorded before elapsed_ms() is called");
    }
    return (moment_ - start->moment_) * 1e3;
  }

 private:
  bool timing_;
  double moment_ = -1;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  int device_count() const override { return 1; }
  c10::Device default_device() const override { return c10::Device(c10::DeviceType::CPU); }

  MemoryFigures memory(c10::Device) const override {
    const HostMemory host = host_memory();
    MemoryFigures figures;
    figures.total = host.limit;
    if (!host_allocator_installed()) {
      figures.free = host.available;
      return figures;
    }
    const HostTensors tensors = host_tensors();
    figures.allocated = tensors.allocated;
    figures.peak = tensors.peak;
    figures.reserved = host_reserved();
    std::int64_t most = host_cap();
    if (most < 0 && host.available >= 0) {  // what the C library keeps for later is ours to use again
      most = default_host_cap(host, figures.reserved) + static_cast<std::int64_t>(::mallinfo2().fordblks);
    }
    figures.free = most < 0 ? -1 : std::max<std::int64_t>(0, most - tensors.allocated);
    return figures;
  }

  std::int64_t allocated(c10::Device) const override { return host_allocator_installed() ? host_allocated() : -1; }
  std::int64_t retries(c10::Device) const override { return -1; }
  void reset_peak(c10::Device) const override { reset_host_peak(); }
  void limit_memory(c10::Device, std::int64_t bytes) const override { set_host_cap(bytes > 0 ? bytes : -1); }
  void release_cache(c10::Device) const override { release_host_memory(); }

  void synchronize(c10::Device) const override {}
  std::unique_ptr<Event> make_event(c10::Device, bool timing) const override {
    return std::make_unique<CpuEvent>(timing);
  }
  std::unique_ptr<CopyStream> make_copy_stream(c10::Device) const override { return nullptr; }

  void divide_terms(const core::LossWork& work, c10::Device) const override { core::divide_terms(work); }
  void decide(const core::VerdictWork& work, c10::Device) const override {
    const double squares = std::accumulate(work.norms, work.norms + work.norm_count, 0.0,
                                           [](double sum, double norm) { return sum + norm * norm; });
    *work.divisor = static_cast<float>(core::decide(work, static_cast<float>(std::sqrt(squares))));
  }

  DeviceFacts describe(c10::Device) const override {
    constexpr std::array kTold = {"avx2",     "avx512f",  "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
                                  "amx_bf16", "amx_int8", "amx_fp16",    "asimd",       "bf16"};
    const MachineFacts machine = machine_facts();
    DeviceFacts facts;
    facts.name = machine.cpu;
    facts.cores = cpu_quota().cores;
    facts.memory_bytes = memory_limit_bytes();
    for (const char* flag : kTold) {
      if (std::ranges::find(machine.cpu_flags, flag) != machine.cpu_flags.end()) {
        facts.flags.emplace_back(flag);
      }
    }
    const auto has = [&](const char* flag) { return std::ranges::find(facts.flags, flag) != facts.flags.end(); };
    facts.fast_bf16 = has("amx_bf16") || has("avx512_bf16") || has("bf16");
    return facts;
  }

  std::string bus_id(c10::Device) const override { return ""; }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace stoker::device
