// SPDX-License-Identifier: Apache-2.0
// Anything that produces batches: the loader, the prefetcher around it, a resident dataset, a test's fake. Sources nest
// like decorators. One consumer at a time.
#pragma once

#include <optional>

#include "stoker/core/batch.h"
#include "stoker/core/source_figures.h"

namespace stoker::core {

class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  // The next batch; empty at the end of the epoch, after which the next call starts the next epoch. DataError for an
  // unreadable sample: the next call continues with the batch after it. A call that throws anything else (no memory, a
  // lost device) has consumed nothing: call it again for the same batch, or for the same end of the epoch. A failure
  // that lasts is thrown each time; the caller decides when to give up.
  [[nodiscard]] virtual std::optional<Batch> next() = 0;
  // The time spent so far, by work; empty for a source without figures. From any thread.
  [[nodiscard]] virtual std::optional<SourceFigures> figures() const { return std::nullopt; }
};

}  // namespace stoker::core
