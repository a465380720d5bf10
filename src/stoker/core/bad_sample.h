// SPDX-License-Identifier: Apache-2.0
// An unreadable sample, for reporting it to people. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stoker::core {

struct BadSample {
  std::int64_t epoch = 0, step = 0;  // of the batch it was drawn for
  std::int64_t index = 0;            // in its source
  std::string name;                  // for people: "train/cat/7.jpg", "train-00001.tar: cat/7.jpg"
  std::string reason;                // what is wrong, with the byte if the decoder knows it
  std::string replaced_by;           // the name of the replacement; empty: skipped
};

// Called on the thread that takes a source's batches, which may be a prefetcher's, once per sample and epoch, in the
// order of batches and rows. Two sources may call at the same time.
using BadSampleListener = std::function<void(const BadSample&)>;

}  // namespace stoker::core
