// SPDX-License-Identifier: Apache-2.0
// Looks after the memory of a run: records an early step as artifacts/memory.json (docs/formats.md), and finds what
// grows from step to step, with its origin. Called by job::Run on the loop's thread; microseconds a step, except in a
// step that is recorded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/core/events.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/memory/leak_watch.h"
#include "stoker/memory/step_recording.h"

namespace stoker::job {

class MemoryWatch {
 public:
  MemoryWatch(const Setup& setup, Session& session, std::filesystem::path run, core::EventEmitter& events);

  // Around the halves of a step, counted from 0.
  void begin_step(std::int64_t step);
  void computed(const core::Batch& batch);
  void step_done();
  // Between steps something else changed what is held: an evaluation, a checkpoint.
  void disturbed();
  // After the last step: adds what only the whole run knows.
  void finish();

 private:
  enum class Leak { kTensors, kHeap };
  enum class Purpose { kRecord, kTrace };
  void look();
  void found(Leak leak, const memory::Growth& growth);
  void tell(const memory::Leftovers& left);
  void keep(const memory::StepRecord& record);
  void write(const memory::StepRecord& record);
  void write_snapshot();
  void store();

  const Setup& setup_;
  Session& session_;
  std::filesystem::path run_;
  core::EventEmitter& events_;
  memory::LeakWatch tensors_, heap_;
  std::optional<memory::StepRecording> recording_;
  Purpose purpose_ = Purpose::kRecord;
  std::int64_t step_ = 0;            // that runs, from 0
  std::int64_t steps_ = 0;           // done in this session
  std::int64_t samples_ = 0;         // of the batch that was recorded
  bool whole_ = true;                // that batch is not the smaller one at the end of an epoch
  std::int64_t largest_batch_ = 0;   // samples, over all ranks
  std::int64_t recorded_step_ = -1;  // of recording_; negative: still running
  std::size_t changes_;              // of the microbatch, so far
  bool wanted_ = false;              // a record, at the next step

  struct Suspicion {
    Leak leak;
    memory::Growth growth;
    std::optional<memory::LeakOrigin> origin;
  };
  std::optional<Suspicion> suspicion_;  // being traced
  bool told_tensors_ = false, told_heap_ = false;
  std::vector<std::string> findings_;
  std::string json_;  // the newest record, without what finish() adds; empty: none
};

}  // namespace stoker::job
