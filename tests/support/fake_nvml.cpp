// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's management library with two GPUs, the second one divided (MIG). Built as libnvidia-ml.so.1 in
// a folder of its own and loaded by path in tests only: alone it is a driver without half of the functions, with
// fake_nvml_rest.cpp a whole one. FAKE_NVML=errors: every function fails but those that start and list;
// FAKE_NVML=refuse: it does not start.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "stoker/device/nvml_abi.h"

using namespace stoker::device::nvml;

bool fake_nvml_fails() {
  const char* mode = std::getenv("FAKE_NVML");
  return mode != nullptr && std::string_view(mode) == "errors";
}

namespace {

int number_of(Device device) { return *static_cast<int*>(device); }

template <typename Number>
int give(Number* where, Number value) {
  if (fake_nvml_fails()) {
    return kUnknownError;
  }
  *where = value;
  return kSuccess;
}

int give(char* where, unsigned length, const char* text) {
  if (fake_nvml_fails()) {
    return kUnknownError;
  }
  if (std::strlen(text) >= length) {
    return kInsufficientSize;
  }
  std::strcpy(where, text);
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* mode = std::getenv("FAKE_NVML");
  return mode != nullptr && std::string_view(mode) == "refuse" ? 9 : kSuccess;
}
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  static int numbers[] = {0, 1};
  *device = &numbers[index];
  return kSuccess;
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) { return give(text, length, "580.65.06"); }
int nvmlDeviceGetName(Device, char* text, unsigned length) { return give(text, length, "NVIDIA Fake 80GB"); }
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  std::strcpy(pci->bus_id, number_of(device) == 0 ? "00000000:3B:00.0" : "00000000:D8:00.0");
  return fake_nvml_fails() ? kUnknownError : kSuccess;
}
int nvmlDeviceGetMemoryInfo(Device, Memory* memory) { return give(memory, {80ULL << 30, 50ULL << 30, 30ULL << 30}); }
int nvmlDeviceGetUtilizationRates(Device device, Utilization* busy) {
  return number_of(device) == 1 ? kNotSupported : give(busy, {75, 40});  // not per slice
}
int nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) { return give(milliwatts, 412'500U); }
int nvmlDeviceGetTotalEnergyConsumption(Device, unsigned long long* millijoules) {
  static unsigned long long total = 1'000'000;
  return give(millijoules, total += 400'000);
}
int nvmlDeviceGetClockInfo(Device, int clock, unsigned* mhz) { return give(mhz, clock == kSmClock ? 1'410U : 2'619U); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* bits) { return give(bits, 0x4ULL | 0x1ULL); }
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, Process* processes) {
  if (number_of(device) == 1 || fake_nvml_fails()) {
    return kNotSupported;
  }
  const char* held = std::getenv("FAKE_NVML_PID");  // a process of the test
  const unsigned pid = held == nullptr ? 4711 : static_cast<unsigned>(std::atoi(held));
  if (*count < 70) {  // more than a first guess
    *count = 70;
    return kInsufficientSize;
  }
  for (unsigned i = 0; i < 70; ++i) {
    processes[i] = {i == 0 ? pid : 900'000 + i, i == 1 ? ~0ULL : 1ULL << 30, 0, 0};
  }
  *count = 70;
  return kSuccess;
}

}  // extern "C"
