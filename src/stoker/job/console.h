// SPDX-License-Identifier: Apache-2.0
// Jobs in words for a terminal: the plan as a table, help of the settings, reports, completion. Used by apps/ alone.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/events.h"
#include "stoker/job/predict.h"
#include "stoker/train/plan.h"

namespace stoker::job {

// The progress line on standard output: drawn on a terminal, plain lines in a file, little if quiet, JSON if json.
[[nodiscard]] std::unique_ptr<core::EventSink> console_sink(bool quiet, bool json);

[[nodiscard]] bool exists(const std::string& path);
// "auto", "cpu", "cuda", "cuda:N"; DeviceError if it is not there.
[[nodiscard]] c10::Device device_named(const std::string& name);

// Every setting with its values, default and reason, grouped; the footer of `stoker train --help`.
[[nodiscard]] std::string settings_help();
// Key, value, origin and reason of each row, aligned; what differs from the defaults is marked.
[[nodiscard]] std::string plan_table(const train::Plan& plan);

// evaluate_split() with what the run folder knows: its data where none is given, its validation cut, the test split if
// there is one and no other is asked for, else val.
[[nodiscard]] SplitReport evaluate_run(const std::string& run, const std::string& data, const std::string& split,
                                       const std::string& checkpoint, const std::string& device);
[[nodiscard]] std::string report_table(const SplitReport& report);
[[nodiscard]] std::string report_json(const SplitReport& report);

// Predictions as CSV (file,rank,label,probability) or JSON lines, to a file or standard output. IoError when refused.
class PredictionWriter {
 public:
  PredictionWriter(const std::string& path, bool json);
  void write(const Prediction& prediction);
  // Flushes; the file exists only after this.
  void finish();

 private:
  std::string path_, text_;
  bool json_;
};

// Candidates for the last word, given the words before it.
[[nodiscard]] std::vector<std::string> complete(const std::vector<std::string>& commands, const std::vector<std::string>& words);

}  // namespace stoker::job
