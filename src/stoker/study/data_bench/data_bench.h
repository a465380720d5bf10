// SPDX-License-Identifier: Apache-2.0
// Measures the loader on this machine: samples per second with one thread, one thread per core, the number that
// threads= asks for and the number that auto finds; where the time goes; and how fast a step may be before it waits.
// Images are decoded again each time, unless cache= is set. For `stoker bench data`. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/core/source_figures.h"
#include "stoker/job/request.h"

namespace stoker::study {

struct DataBenchOptions {
  job::Request request;  // as for training
  double seconds = 4;    // per way
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };
};

// A measurement with one number of threads.
struct DataWay {
  std::string name;           // "1 thread", "2 threads", "auto: 2 threads"
  int threads = 0;            // at the end
  double rate = 0;            // samples per second, wall time
  double cpu_ms = 0;          // per sample, over all threads of the process
  core::SourceFigures spent;  // during the measured time
};

struct DataBench {
  std::string data, task;    // path and description
  std::int64_t samples = 0;  // of the training split
  std::int64_t batch = 0;    // samples
  int cores = 0;             // that this process may use
  std::vector<DataWay> ways;
  bool stopped = false;  // stopped early
};

// Errors as job::open_data and the source.
[[nodiscard]] DataBench bench_data(const DataBenchOptions& options);

// Text with bars; JSON.
[[nodiscard]] std::string data_bench_text(const DataBench& bench);
[[nodiscard]] std::string data_bench_json(const DataBench& bench);

}  // namespace stoker::study
