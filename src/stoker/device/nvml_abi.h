// SPDX-License-Identifier: Apache-2.0
// Types and constants of NVML's binary interface, from NVIDIA's NVML API reference: torch's wheel has no nvml.h. Used
// by the loader in nvml.cpp and by the library that stands in for NVML in tests. Plain values.
#pragma once

namespace stoker::device::nvml {

using Device = void*;
using Sample = void*;  // nvmlGpmSample_t

// nvmlReturn_t
inline constexpr int kSuccess = 0;
inline constexpr int kNotSupported = 3;
inline constexpr int kInsufficientSize = 7;
inline constexpr int kUnknownError = 999;

// nvmlClockType_t, nvmlTemperatureSensors_t
inline constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
inline constexpr unsigned kLinks = 18;  // NVML_NVLINK_MAX_LINKS

struct Utilization {
  unsigned gpu;     // percent of the time in which a kernel ran
  unsigned memory;  // percent of the time in which memory was read or written
};

struct Memory {
  unsigned long long total, free, used;  // bytes
};

struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];  // "00000000:3B:00.0"
};

struct Process {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_memory;  // bytes; all bits set if unknown
  unsigned gpu_instance, compute_instance;
};

// Bits of nvmlDeviceGetCurrentClocksThrottleReasons.
struct ThrottleReason {
  unsigned long long bit;
  const char* name;
};
inline constexpr ThrottleReason kThrottleReasons[] = {
    {0x4, "power_cap"},         {0x8, "hardware_slowdown"}, {0x10, "sync_boost"},
    {0x20, "software_thermal"}, {0x40, "hardware_thermal"}, {0x80, "power_brake"},
    {0x100, "display_clock"},   {0x200, "board_limit"},     {0x400, "reliability"},
};  // 0x1 (idle) and 0x2 (clocks that the user set) slow nothing down

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version;
  unsigned supported;
};

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id;
  int status;
  double value;
  const char *short_name, *long_name, *unit;
};

inline constexpr unsigned kGpmVersion = 1;  // NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION
inline constexpr unsigned kGpmMost = 512;   // more than NVML_GPM_METRIC_MAX of any driver so far

struct GpmMetrics {  // nvmlGpmMetricsGet_t
  unsigned version;
  unsigned count;
  Sample before, after;
  GpmMetric metrics[kGpmMost];
};

// nvmlGpmMetricId_t
inline constexpr unsigned kGpmSmBusy = 2, kGpmOccupancy = 3, kGpmTensor = 5, kGpmDram = 10, kGpmPcieSent = 20,
                          kGpmPcieReceived = 21, kGpmNvlinkReceived = 60, kGpmNvlinkSent = 61;

}  // namespace stoker::device::nvml
