// SPDX-License-Identifier: Apache-2.0
// The other half of the stand-in for NVML (fake_nvml.cpp). Each sample of the performance counters has a number, and
// the multiprocessors were busy for a tenth of the difference of two.
#include <cstring>

#include "stoker/device/nvml_abi.h"

using namespace stoker::device::nvml;

bool fake_nvml_fails();

namespace {

template <typename Number>
int give(Number* where, Number value) {
  if (fake_nvml_fails()) {
    return kUnknownError;
  }
  *where = value;
  return kSuccess;
}

double count = 0;  // of samples

}  // namespace

extern "C" {

int nvmlDeviceGetUUID(Device, char* text, unsigned) {
  std::strcpy(text, "GPU-01234567");
  return fake_nvml_fails() ? kUnknownError : kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) { return give(milliwatts, 700'000U); }
int nvmlDeviceGetCurrPcieLinkGeneration(Device, unsigned* generation) { return give(generation, 4U); }
int nvmlDeviceGetCurrPcieLinkWidth(Device, unsigned* width) { return give(width, 8U); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned* generation) { return give(generation, 5U); }
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* width) { return give(width, 16U); }
int nvmlDeviceGetMaxClockInfo(Device, int clock, unsigned* mhz) {
  return give(mhz, clock == kSmClock ? 1'980U : 2'619U);
}
int nvmlDeviceGetTemperature(Device, int, unsigned* celsius) { return give(celsius, 64U); }
int nvmlDeviceGetNvLinkState(Device, unsigned link, unsigned* active) {
  return link < 4 ? give(active, link == 3 ? 0U : 1U) : kNotSupported;
}
int nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return give(current, static_cast<unsigned>(*static_cast<int*>(device)));
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device, unsigned* processes, Process*) { return give(processes, 0U); }

int nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  support->supported = *static_cast<int*>(device) == 0 ? 1 : 0;
  return support->version == kGpmVersion && !fake_nvml_fails() ? kSuccess : kUnknownError;
}
int nvmlGpmSampleAlloc(Sample* sample) { return give(sample, static_cast<Sample>(new double(0))); }
int nvmlGpmSampleFree(Sample sample) {
  delete static_cast<double*>(sample);
  return kSuccess;
}
int nvmlGpmSampleGet(Device, Sample sample) { return give(static_cast<double*>(sample), ++count); }
int nvmlGpmMetricsGet(GpmMetrics* metrics) {
  const double samples = *static_cast<double*>(metrics->after) - *static_cast<double*>(metrics->before);
  for (unsigned i = 0; i < metrics->count; ++i) {
    GpmMetric& metric = metrics->metrics[i];
    metric.status = metric.id == kGpmNvlinkSent ? kNotSupported : kSuccess;
    metric.value = metric.id == kGpmSmBusy ? 10 * samples : metric.id == kGpmDram ? 55 : 12.5;
  }
  return fake_nvml_fails() || metrics->version != kGpmVersion ? kUnknownError : kSuccess;
}

}  // extern "C"
