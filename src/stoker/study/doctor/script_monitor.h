// SPDX-License-Identifier: Apache-2.0
// Watches the machine and the processes of somebody else's script from outside, and appends a record per second to the
// script's records (monitor.jsonl). Used by watch_script. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "stoker/observe/monitor/sampler.h"

namespace stoker::study {

class ScriptMonitor {
 public:
  // records: where the script's processes write. IoError.
  explicit ScriptMonitor(std::filesystem::path records);
  // To be called every observe::kTickSeconds. Does nothing until a process has ended a step.
  void tick();

  // The process that trains; 0: none yet.
  [[nodiscard]] int trainer() const { return trainer_; }

 private:
  struct Times {
    double cpu_seconds = 0, waited_seconds = 0;
  };
  void find_trainer(double now);
  // Of the script's other processes, since the last call.
  Times others();
  void add_others(double seconds, std::vector<core::Figure>& figures);

  std::filesystem::path records_;
  int trainer_ = 0;
  double looked_ = 0;  // for the trainer
  std::optional<observe::Sampler> sampler_;
  std::map<int, Times> others_;  // at the last call
};

}  // namespace stoker::study
