// SPDX-License-Identifier: Apache-2.0
// torch's profiler and its anomaly mode, switched on and off: what the tips table measures the cost of. Process-wide;
// one thread at a time.
#pragma once

namespace stoker::study {

// torch.profiler's recording of operators on the CPU, with its defaults. One at a time, on one thread; stopped at the
// latest when this goes, so that a step that throws does not leave it to what is measured next.
class ProfilerSwitch {
 public:
  ProfilerSwitch() = default;
  ~ProfilerSwitch();
  ProfilerSwitch(const ProfilerSwitch&) = delete;
  ProfilerSwitch& operator=(const ProfilerSwitch&) = delete;

  void start();  // nothing if it runs
  // What was recorded is brought together as for a report, and dropped. Nothing if it does not run.
  void stop();

 private:
  bool runs_ = false;
};

// torch.autograd.set_detect_anomaly.
void set_anomaly_mode(bool on);

}  // namespace stoker::study
