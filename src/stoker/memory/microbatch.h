// SPDX-License-Identifier: Apache-2.0
// The samples per forward pass over a run: halved when memory runs out, doubled after enough steps without that. The
// pure policy behind train::Recovery; its schedule is state, so that a resumed or repeated run splits alike. One
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/stateful.h"

namespace stoker::memory {

// From this step on, counted from 1, passes have at most this many samples; 0: the whole batch.
struct MicrobatchChange {
  std::int64_t step = 1;
  std::int64_t samples = 0;
  bool operator==(const MicrobatchChange&) const = default;
};
using MicrobatchSchedule = std::vector<MicrobatchChange>;

// "18:32,118:64" and back: steps ascend. ConfigError for another text. An empty text is an empty schedule.
[[nodiscard]] MicrobatchSchedule parse_schedule(std::string_view text);
[[nodiscard]] bool is_schedule(std::string_view text);
[[nodiscard]] std::string schedule_text(const MicrobatchSchedule& schedule);

struct MicrobatchOptions {
  std::int64_t asked = 0;          // samples per forward pass; 0: the whole batch
  std::int64_t smallest = 1;       // samples that the model accepts in a pass: 2 with batch norm
  MicrobatchSchedule repeat = {};  // the schedule of another run; it grows only as this says
};

class Microbatch final : public core::Stateful {
 public:
  static constexpr std::int64_t kPatience = 100;  // steps before it tries to grow; doubled each time that this fails

  explicit Microbatch(MicrobatchOptions options);

  // Before the work on a step, counted from 1.
  void begin_step(std::int64_t step);
  // Passes over a batch of this many samples, so that none is smaller than the model accepts.
  [[nodiscard]] std::int64_t passes(std::int64_t samples) const;
  // The same with another limit; 0: the whole batch.
  [[nodiscard]] std::int64_t passes_under(std::int64_t limit, std::int64_t samples) const;
  // Samples of the largest of these passes.
  [[nodiscard]] std::int64_t largest_pass(std::int64_t samples) const;
  // Halves the passes over a batch of this size, from this step or the next one on; false if the model accepts no
  // smaller ones.
  [[nodiscard]] bool shrink(std::int64_t samples, bool from_next_step = false);
  // Samples of a pass at most; 0: the whole batch.
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  // As another rank has it, from this step on.
  void follow(std::int64_t samples);
  // After a step that was taken.
  void step_done() { ++clean_; }
  // Whether the next step may be the first of enough since a change, and whether it is smaller than asked.
  [[nodiscard]] bool may_grow() const;
  // may_grow() after one more step.
  [[nodiscard]] bool may_grow_soon() const;
  void grow();
  // Not yet: waits for as many steps again.
  void wait_again() { clean_ = 0; }

  // Changes since the start of the run; the size that was asked for is not among them.
  [[nodiscard]] const MicrobatchSchedule& schedule() const { return changes_; }

  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  void note(std::int64_t step);
  [[nodiscard]] bool waits(std::int64_t steps) const;

  MicrobatchOptions options_;
  std::int64_t step_ = 1;
  std::int64_t samples_;  // 0: the whole batch
  std::int64_t clean_ = 0;
  std::int64_t patience_ = kPatience;
  bool growing_ = false;            // the newest change made it larger
  std::int64_t largest_batch_ = 0;  // that ran out of memory, samples
  MicrobatchSchedule changes_;
};

}  // namespace stoker::memory
