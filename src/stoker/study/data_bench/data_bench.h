// SPDX-License-Identifier: Apache-2.0
// What the loader makes of a folder on this machine: samples a second on one thread, on a thread a core, on
// as many as threads= asks for and on as many as it finds by itself, where the time goes, and which step would have to
// wait. Images are decoded anew each time, unless cache= asks for more. For `stoker bench data`. One thread.
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
  double seconds = 4;    // of each way
  std::function<void(const std::string&)> say;
  std::function<bool()> stop = [] { return false; };
};

// One number of threads.
struct DataWay {
  std::string name;           // "1 thread", "2 threads", "auto: 2 threads"
  int threads = 0;            // at the end
  double rate = 0;            // samples a second of wall time
  double cpu_ms = 0;          // of all threads of the process, a sample
  core::SourceFigures spent;  // of the measured time
};

struct DataBench {
  std::string data, task;    // path and what it is, in words
  std::int64_t samples = 0;  // of the training split
  std::int64_t batch = 0;    // samples
  int cores = 0;             // that this process may use
  std::vector<DataWay> ways;
  bool stopped = false;  // before its end
};

// Errors as job::open_data and the source.
[[nodiscard]] DataBench bench_data(const DataBenchOptions& options);

// For people, with bars; for programs.
[[nodiscard]] std::string data_bench_text(const DataBench& bench);
[[nodiscard]] std::string data_bench_json(const DataBench& bench);

}  // namespace stoker::study
