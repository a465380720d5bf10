// SPDX-License-Identifier: Apache-2.0
// Writes predictions as CSV or JSON lines; docs/formats.md has the columns. Used by `stoker predict`; one thread at a
// time.
#pragma once

#include <string>

#include "stoker/job/predict.h"

namespace stoker::job {

// To a file, or to standard output for an empty path. IoError if it cannot be written.
class PredictionWriter {
 public:
  PredictionWriter(std::string path, bool json) : path_(std::move(path)), json_(json) {}
  void write(const Prediction& prediction);
  // Flushes; the file exists only after this.
  void finish();

 private:
  std::string path_, text_;
  bool json_;
  bool begun_ = false;  // the header is written
};

}  // namespace stoker::job
