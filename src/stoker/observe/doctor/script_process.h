// SPDX-License-Identifier: Apache-2.0
// What one Python process of a script recorded (docs/doctor-script.md). Used by script_facts. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

inline constexpr std::string_view kMonitorFile = "monitor.jsonl";

// Sums since the process started, at one moment.
struct Loading {
  double at = 0;  // seconds of the clock that all processes share
  std::int64_t samples = 0;
  double read_bytes = 0;     // of files and pipes, from memory or not
  double private_bytes = 0;  // that no other process shares; 0: unknown
  double shared_bytes = 0;   // that it shares with its parent until one of them writes
  std::vector<core::StageFigures> stages;
};

struct ScriptPeriod {
  double begin = 0;           // seconds of the same clock
  double resident_bytes = 0;  // at its end; 0: unknown
  double page_faults = -1;    // of the thread that trains, without reading a disk; -1: unknown
  double system_seconds = 0;  // of the same thread in the kernel
  double forks = 0;
  Period period;
};

// What a rank of a training with several noted.
struct RankRecord {
  int rank = -1, world = 0;
  std::map<std::int64_t, double> work;  // seconds of a step without waiting for other ranks, by the step's number
  double digest = -1;                   // of a parameter after step 40; -1: unknown
};

struct ScriptProcess {
  int pid = 0, parent = 0;
  bool has_torch = false, trains = false;  // trains: an optimizer made steps
  std::vector<std::string> arguments;
  std::vector<ScriptPeriod> periods;
  std::vector<Loading> loading;
  int worker = -1;                    // of a DataLoader: its number; -1: it is none
  std::vector<double> first_batches;  // numbers of their content
  double threads = 0;                 // of its operators, while it loads
  std::vector<double> cores;          // their numbers, on which it may load
  RankRecord ranks;
  std::vector<Site> sites;
  std::vector<CallShare> calls;                             // shares are seconds
  std::map<std::string, double, std::less<>> call_seconds;  // of the parts in which calls were watched
  std::map<std::string, double, std::less<>> figures;       // "loader.workers"
  std::map<std::string, std::string, std::less<>> words;
  double tracker_seconds = 0;    // on a core, of a tracker's own thread, in all periods
  std::string burst;             // the file of the steps that a profiler recorded; empty: none
  std::int64_t burst_steps = 0;  // that the whole file holds
  std::vector<WaitingCall> waits;
  std::vector<std::string> trouble;  // what the shim could not do
  std::int64_t bad_lines = 0;

  [[nodiscard]] int workers() const;       // of the training's loader
  [[nodiscard]] std::string name() const;  // "train.py", or a module; empty: multiprocessing started it
};

// A last line that is being written is left out.
[[nodiscard]] ScriptProcess read_script_process(std::istream& records);

// Why there are no steps, as a sentence for people.
[[nodiscard]] std::string state_without_steps(const std::vector<ScriptProcess>& processes);

}  // namespace stoker::observe::doctor
