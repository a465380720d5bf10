// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/memory_watch.h"

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/memory_snapshot.h"
#include "stoker/device/process_facts.h"
#include "stoker/job/memory_json.h"
#include "stoker/job/memory_words.h"

namespace stoker::job {
namespace {

constexpr std::int64_t kRecorded = 2;   // steps before the one that is recorded: caches and moments exist by then
constexpr std::int64_t kHeapEvery = 8;  // steps
constexpr std::int64_t kFollow = 3;     // steps after which what is left of a step stays

// Steps that make no garbage still move the heap by some hundred bytes.
constexpr memory::LeakOptions kHeap{.warm_up = 4, .settle = 1, .window = 32, .look_every = 4, .least = 512};

}  // namespace

MemoryWatch::MemoryWatch(const Setup& setup, Session& session, std::filesystem::path run, core::EventEmitter& events)
    : setup_(setup),
      session_(session),
      run_(std::move(run)),
      events_(events),
      heap_(kHeap),
      changes_(session.recovery().schedule().size()) {}

void MemoryWatch::begin_step(std::int64_t step) {
  step_ = step;
  const std::size_t changes = session_.recovery().schedule().size();
  if (std::exchange(changes_, changes) != changes) {
    wanted_ = true;
    disturbed();
  }
  wanted_ = (wanted_ || steps_ == kRecorded) && setup_.ranks->rank() == 0;
  if (recording_ || (!suspicion_ && !wanted_)) {
    return;
  }
  purpose_ = suspicion_ ? Purpose::kTrace : Purpose::kRecord;
  wanted_ = wanted_ && purpose_ != Purpose::kRecord;
  recording_.emplace(setup_.device);
  recorded_step_ = -1;
  if (purpose_ == Purpose::kRecord && recording_->active()) {
    device::keep_memory_history(setup_.device, true);
  } else if (purpose_ == Purpose::kRecord) {
    recording_.reset();
  }
}

void MemoryWatch::computed(const core::Batch& batch) {
  largest_batch_ = std::max(largest_batch_, batch.global_size());
  if (!recording_ || recorded_step_ >= 0) {
    return;
  }
  session_.own_storages(*recording_);
  for (const core::Field& field : batch.fields()) {
    recording_->own(memory::Category::kInputs, field.values);
    recording_->own(memory::Category::kInputs, field.offsets);
  }
  samples_ = batch.size();
  whole_ = batch.global_size() == largest_batch_;
}

void MemoryWatch::step_done() {
  ++steps_;
  if (recording_ && recorded_step_ < 0) {
    const memory::StepRecord record = recording_->finish();
    recorded_step_ = step_;
    if (purpose_ == Purpose::kRecord) {
      recording_.reset();
      keep(record);
    }
  } else if (recording_ && step_ >= recorded_step_ + kFollow) {
    tell(recording_->leftovers());
    recording_.reset();
  }
  if (!recording_) {
    look();
  }
}

// The smaller batch at the end of an epoch shows less than the run needs: its record is kept until there is another.
void MemoryWatch::keep(const memory::StepRecord& record) {
  if (!whole_ && !json_.empty()) {
    device::keep_memory_history(setup_.device, false);
    return;
  }
  wanted_ = wanted_ || !whole_;
  write(record);
  write_snapshot();
}

void MemoryWatch::look() {
  const std::int64_t held = device::backend_for(setup_.device).allocated(setup_.device);
  if (const auto growth = tensors_.add(step_ + 1, held); growth && !told_tensors_) {
    found(Leak::kTensors, *growth);
  }
  if (steps_ % kHeapEvery == 0) {
    const std::int64_t heap = device::heap_bytes().used - device::host_allocated_in_heap();
    if (const auto growth = heap_.add(step_ + 1, heap); growth && !told_heap_ && !suspicion_) {
      found(Leak::kHeap, *growth);
    }
  }
}

// The next step is traced before anything is told. On a CPU the ages of tensors must agree.
void MemoryWatch::found(Leak leak, const memory::Growth& growth) {
  std::optional<memory::LeakOrigin> origin;
  if (leak == Leak::kTensors && setup_.device.is_cpu()) {
    origin = memory::origin_of(growth, device::host_bytes_by_age());
    if (!origin) {
      return;
    }
  }
  suspicion_ = Suspicion{leak, growth, origin};
}

void MemoryWatch::tell(const memory::Leftovers& left) {
  const Suspicion found = *std::exchange(suspicion_, std::nullopt);
  const bool tensors = found.leak == Leak::kTensors;
  (tensors ? told_tensors_ : told_heap_) = true;
  told_heap_ = told_heap_ || left.graph_nodes > 0;  // nodes are on the heap
  findings_.push_back(tensors ? tensor_leak(found.growth, found.origin, left, recorded_step_ + 1)
                              : heap_leak(found.growth, left, recorded_step_ + 1));
  events_.emit(core::Finding{findings_.back()});
}

void MemoryWatch::disturbed() {
  tensors_.disturbed();
  heap_.disturbed();
}

void MemoryWatch::write(const memory::StepRecord& record) {
  MemoryRecord facts;
  facts.step = step_ + 1;
  facts.samples = samples_;
  const std::int64_t passes = std::max<std::int64_t>(1, session_.recovery().passes(samples_));
  facts.microbatch = (samples_ + passes - 1) / passes;
  facts.device = setup_.device;
  facts.figures = device::backend_for(setup_.device).memory(setup_.device);
  facts.inactive = device::inactive_bytes(setup_.device);
  facts.retries = device::backend_for(setup_.device).retries(setup_.device);
  facts.heap_kept = device::heap_bytes().kept;
  json_ = memory_json(facts, record);
  store();  // without an event: those of a resumed run are those of an uninterrupted one
}

// For PyTorch's viewer, https://pytorch.org/memory_viz; nothing on a CPU.
void MemoryWatch::write_snapshot() {
  if (!device::can_snapshot_memory(setup_.device)) {
    return;
  }
  try {
    write_file_atomically(run_ / "artifacts/memory_snapshot.pickle", device::memory_snapshot(setup_.device));
  } catch (const std::exception& error) {
    events_.emit(core::Finding{fmt::format("the snapshot of the memory could not be written: {}", error.what())});
  }
  device::keep_memory_history(setup_.device, false);
}

void MemoryWatch::finish() {
  recording_.reset();
  if (!json_.empty()) {
    store();
  }
}

// A record is for people: a full disk does not end the run for it.
void MemoryWatch::store() {
  try {
    std::filesystem::create_directories(run_ / "artifacts");
    write_file_atomically(run_ / kMemoryFile, with_run_facts(json_, {.host_peak = device::process_memory().peak,
                                                                     .schedule = session_.recovery().schedule(),
                                                                     .findings = findings_}));
  } catch (const std::exception& error) {
    events_.emit(core::Finding{fmt::format("the memory record could not be written: {}", error.what())});
  }
}

}  // namespace stoker::job
