// SPDX-License-Identifier: Apache-2.0
// Records steps of this process with Kineto, torch's profiler: operators with their shapes, allocations, and on a GPU
// kernels and copies. The trace that it writes opens in Perfetto, chrome://tracing, TensorBoard's profiler plugin and
// `stoker trace`. Used by job::ProfileWatch and benches, on the thread that steps. One at a time in a process.
//
//   Recorder recorder(device);   // once the process is warm; nothing is recorded yet
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
  // Prepares Kineto; on a GPU this starts CUPTI, which makes the next step slow. ConfigError if another profiler runs
  // on this thread (nvtx=on is one).
  explicit Recorder(c10::Device device);
  // Detaches; what was recorded is dropped.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void start();
  void begin_step(std::int64_t number);
  void end_step();
  // Detaches, and writes the trace as gzip to path. Waits for the device. IoError if the file cannot be written.
  [[nodiscard]] Recorded finish(const std::filesystem::path& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::observe::profile
