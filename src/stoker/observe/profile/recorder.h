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
  // Steps between the constructor and start(). They are recorded and dropped, so that the recorder's own code and
  // memory are warm: of a step of 0.18 ms, 20 recorded ones took 2.8 times the usual without them, 2.2 times with three
  // and 2.1 times with five (the first burst of a process, medians of 7; 2-core Xeon).
  static constexpr std::int64_t kWarmUp = 3;

  // Starts Kineto, and on a GPU CUPTI, which makes the next step slow. ConfigError if another profiler runs on this
  // thread (nvtx=on is one).
  explicit Recorder(c10::Device device);
  // Detaches; what was recorded is dropped.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Records from here on.
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
