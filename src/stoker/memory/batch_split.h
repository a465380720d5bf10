// SPDX-License-Identifier: Apache-2.0
// How a batch is split into forward passes, and what happens when one of them runs out of memory. Asked by train::Step
// and train::evaluate(); train::Recovery is the implementation of a run. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>

#include "stoker/core/batch_source.h"
#include "stoker/memory/out_of_memory.h"

namespace stoker::memory {

class BatchSplit {
 public:
  virtual ~BatchSplit() = default;
  // Forward passes over a batch of this many samples; their sizes differ by at most one.
  [[nodiscard]] virtual std::int64_t passes(std::int64_t samples) const = 0;
  // Samples of a forward pass at most; 0: the whole batch. Of several ranks, all take the smallest limit.
  [[nodiscard]] virtual std::int64_t limit() const { return 0; }
  virtual void limit_to(std::int64_t samples) { (void)samples; }
  // passes() as it is with another limit.
  [[nodiscard]] virtual std::int64_t passes_under(std::int64_t limit, std::int64_t samples) const {
    (void)limit;
    return passes(samples);
  }
  // The next batch. A source that ran out of memory has consumed nothing, so it can be asked again.
  [[nodiscard]] virtual std::optional<core::Batch> next(core::BatchSource& source) { return source.next(); }
  // Memory ran out; what was computed has been dropped. Returns to have it computed again, perhaps in more passes; else
  // throws. Called in a handler of the error. after_passes: the passes are done, and only what follows is computed
  // again, so more passes begin with the next batch.
  virtual void ran_out(const std::exception& error, std::int64_t samples, bool after_passes) = 0;
};

// Passes of at most `largest` samples; 0: one pass. Never tries again.
class FixedSplit final : public BatchSplit {
 public:
  explicit FixedSplit(std::int64_t largest = 0) : largest_(largest) {}
  [[nodiscard]] std::int64_t passes(std::int64_t samples) const override {
    const std::int64_t most = std::max<std::int64_t>(1, largest_ > 0 ? largest_ : samples);
    return std::max<std::int64_t>(1, (samples + most - 1) / most);
  }
  void ran_out(const std::exception&, std::int64_t, bool) override { throw; }

 private:
  std::int64_t largest_;
};

// Runs work() until it does not run out of memory; other errors pass through. undo(): after each failure.
template <typename Work, typename Undo>
void until_it_fits(BatchSplit& split, std::int64_t samples, const Work& work, const Undo& undo,
                   bool after_passes = false) {
  while (true) {
    try {
      work();
      return;
    } catch (const std::exception& error) {
      rethrow_unless_out_of_memory(error);
      undo();
      split.ran_out(error, samples, after_passes);
    }
  }
}
template <typename Work>
void until_it_fits(BatchSplit& split, std::int64_t samples, const Work& work) {
  until_it_fits(split, samples, work, [] {});
}

}  // namespace stoker::memory
