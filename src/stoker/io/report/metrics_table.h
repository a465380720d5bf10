// SPDX-License-Identifier: Apache-2.0
// metrics.csv as curves: read once, row by row, into a bounded number of points. Used by the report. Thread-safe: no
// state; the file may grow in the meantime.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/io/report/downsample.h"

namespace stoker::io {

struct StepAndText {
  std::int64_t step = 0;
  std::string text;
};

// One kind of event: the count and the first occurrences.
struct Occurrences {
  static constexpr std::size_t kKept = 200;
  std::int64_t count = 0;
  std::vector<StepAndText> first;

  void add(std::int64_t step, std::string text);
};

// The values of one metric on one split.
struct EvaluatedSeries {
  std::string split, metric;
  Downsample points;  // one column
  std::optional<double> last;
};

struct MetricsTable {
  // Columns of steps: lr, seconds, data_wait, memory_bytes, samples, throughput (samples per second), then the scalars.
  enum Column : std::size_t { kLr, kSeconds, kDataWait, kMemory, kSamples, kThroughput, kFirstScalar };

  std::vector<std::string> scalars;
  Downsample steps{0, 2};
  std::vector<EvaluatedSeries> evaluated;
  std::int64_t rows = 0;  // steps
  std::int64_t last_step = 0;
  double seconds = 0, data_wait = 0;
  double samples = 0;
  Occurrences not_finite;  // "loss is nan"
  Occurrences skipped;
  std::int64_t damaged = 0;   // rows that could not be read
  std::int64_t left_out = 0;  // columns or metrics that do not fit into a page
};

// most: points per curve. A missing file is an empty table; an incomplete last line is ignored. Names are printable
// text. DataError if the file cannot be read.
[[nodiscard]] MetricsTable read_metrics_table(const std::filesystem::path& csv, std::size_t most);

}  // namespace stoker::io
