// SPDX-License-Identifier: Apache-2.0
// Records steps of this process with Kineto, torch's profiler: operators with their shapes, allocations, and on a GPU
// kernels and copies. The trace that it writes opens in Perfetto, chrome://tracing, TensorBoard's profiler plugin and
// `stoker trace`. Used by job::ProfileWatch and benches, on the thread that steps. One at a time in a process.
//
//   Recorder recorder(device);   // once the process is warm
//   ...                          // kWarmUp steps
//   recorder.start();
//   recorder.begin_step(12); ...; recorder.end_step();   // for each step: a range "ProfilerStep#12"
//   Recorded recorded = recorder.finish(path);           // detached: later steps cost what they did before
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "stoker/observe/profile/recorded.h"

namespace stoker::observe::profile {

class Recorder {
 public:
  // Steps between the constructor and start(). They are recorded and dropped, so that the recorder's memory is mapped:
  // in the first 20 recorded steps of a process, of 0.1 to 0.2 ms each, this many took page faults from 23 to 4 a step
  // and the time from 2.8 to 2.2 times the usual; five took it to 2.1 (medians of 7; 2-core Xeon).
  static constexpr std::int64_t kWarmUp = 3;

  // Starts Kineto, and on a GPU CUPTI, which makes the next step slow. ConfigError if another profiler runs on this
  // thread (nvtx=on is one).
  explicit Recorder(c10::Device device);
  // Detaches; what was recorded is dropped.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Drops what was recorded and records from here on.
  void start();
  void begin_step(std::int64_t number);
  void end_step();
  // Detaches, and writes the trace as gzip to path. Waits for the device. IoError if the file cannot be written.
  [[nodiscard]] Recorded finish(const std::filesystem::path& path);

 private:
  void enable();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::observe::profile
