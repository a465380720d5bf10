// SPDX-License-Identifier: Apache-2.0
// Switches torch's profiler and anomaly mode on and off, so that the tips table can measure their cost. Process-wide;
// one thread at a time.
#pragma once

namespace stoker::study {

// Records operators on the CPU as torch.profiler does by default. One at a time, on one thread. The destructor stops
// it, so that a step that throws does not affect the next measurement.
class ProfilerSwitch {
 public:
  ProfilerSwitch() = default;
  ~ProfilerSwitch();
  ProfilerSwitch(const ProfilerSwitch&) = delete;
  ProfilerSwitch& operator=(const ProfilerSwitch&) = delete;

  void start();  // no effect if it is running
  // Collects the records as for a report and drops them. No effect if it is not running.
  void stop();

 private:
  bool runs_ = false;
};

// torch.autograd.set_detect_anomaly.
void set_anomaly_mode(bool on);

}  // namespace stoker::study
