// SPDX-License-Identifier: Apache-2.0
// Where the time of a thread goes, by phase: a book into which core::PhaseScope writes each change of phase. Every
// moment between open() and the last change is booked to exactly one phase, so the phases sum to wall time. Made by
// train::FeedWatch for the loop's thread; read by observe/anatomy. Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/phase_list.h"

namespace stoker::core {

// Of one phase. CPU time is read in some of its visits.
struct PhaseSpent {
  double seconds = 0;     // of wall time
  double probed_cpu = 0;  // CPU seconds of this thread, in the visits where it was read
  std::int64_t visits = 0, probed_visits = 0;

  // Of all visits; -1: never read. The mean of the visits that were read: CPU time has no long tail as wall time has,
  // where a visit in which the kernel took the core away lasts a thousand times as long as others.
  [[nodiscard]] double cpu_seconds() const {
    return probed_visits > 0 ? probed_cpu * static_cast<double>(visits) / static_cast<double>(probed_visits) : -1;
  }
};
using PhasesSpent = std::array<PhaseSpent, kPhases>;

// A stage that user code named (observe/mark.h).
struct MarkSpent {
  std::string name;
  double seconds = 0;
  std::int64_t times = 0;
};

// Hears each change of phase, on the thread of the book: device::PhaseEvents. Must not throw.
class PhaseListener {
 public:
  virtual ~PhaseListener() = default;
  virtual void entered(Phase phase) noexcept = 0;
};

class PhaseBook {
 public:
  static constexpr std::size_t kMostMarks = 32;  // names; later ones are not booked

  // clock: seconds, steady; cpu_clock: CPU seconds of the calling thread. Those of the system if not set.
  explicit PhaseBook(std::function<double()> clock = {}, std::function<double()> cpu_clock = {});
  ~PhaseBook() { close(); }
  PhaseBook(const PhaseBook&) = delete;
  PhaseBook& operator=(const PhaseBook&) = delete;

  // Becomes the book of this thread, empty, in phase kOther; close() puts back the book before.
  void open();
  void close();
  [[nodiscard]] double now() const;

  // Called by PhaseScope: the thread is in another phase from now on. Returns the phase that it left. enter() stays in
  // an evaluation or a checkpoint.
  Phase enter(Phase phase) { return turn(whole(current_) ? current_ : phase); }
  Phase turn(Phase phase);
  // Books the current phase up to now. Returns now.
  double settle();
  // Reads CPU time, too, from the next change on: a system call per change. Evaluations and checkpoints always do.
  void probe(bool on) { probing_ = on; }
  void listen(PhaseListener* listener) { listener_ = listener; }

  // Since open(), up to the last change or settle().
  [[nodiscard]] const PhasesSpent& spent() const { return spent_; }
  [[nodiscard]] double seconds(Phase phase) const { return spent_[index_of(phase)].seconds; }
  // Since open(), of all phases.
  [[nodiscard]] double total() const { return since_ - opened_; }

  // The place of a mark's time, for add_mark(); kMostMarks: there is no room.
  [[nodiscard]] std::size_t mark(std::string_view name);
  void add_mark(std::size_t place, double seconds);
  [[nodiscard]] const std::vector<MarkSpent>& marks() const { return marks_; }

 private:
  // Phases that last long and come rarely.
  static bool whole(Phase phase) { return phase == Phase::kEvaluation || phase == Phase::kCheckpoint; }
  void book_cpu();

  std::function<double()> clock_, cpu_clock_;
  PhaseBook* outer_ = nullptr;  // the book of this thread before
  bool is_open_ = false;
  Phase current_ = Phase::kOther;
  double opened_ = 0, since_ = 0;
  bool probing_ = false, cpu_known_ = false;
  double cpu_since_ = 0;
  PhasesSpent spent_{};
  std::vector<MarkSpent> marks_;
  PhaseListener* listener_ = nullptr;
};

// The book of this thread; null: time is not booked.
inline thread_local PhaseBook* t_book = nullptr;

}  // namespace stoker::core
