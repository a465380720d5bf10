// SPDX-License-Identifier: Apache-2.0
// A run on an MLflow tracking server: its plan as parameters, steps and evaluations as metrics. A sink of the EventBus;
// called on one thread at a time, which waits for the server. docs/formats.md describes the keys.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "stoker/core/events.h"

namespace stoker::io {

// While the server does not answer, values wait in memory (at most 200,000), it is asked again after 1 s, 2 s, ... 30
// s, and the findings have the reason once. What is not delivered ten seconds after the end of the run is kept in the
// run folder as mlflow-pending.jsonl, which a resume delivers. mlflow.json names the run on the server, so that a
// resumed run continues it.
class MlflowLog final : public core::EventSink {
 public:
  // address: http(s)://HOST[:PORT]. findings: receives failures. The experiment is that of MLFLOW_EXPERIMENT_NAME, or
  // "stoker". IoError if there is no libcurl; on() throws the IoError of a disk that takes no mlflow.json.
  MlflowLog(const std::filesystem::path& run_folder, const std::string& address, core::EventEmitter& findings);
  ~MlflowLog() override;

  void on(const core::Event& event) override;
  void flush() override;
  [[nodiscard]] bool wants_every_step() const override { return true; }  // a slow server must not merge steps

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
