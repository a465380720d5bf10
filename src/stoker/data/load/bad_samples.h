// SPDX-License-Identifier: Apache-2.0
// Policy for unreadable samples: stop the run, skip them, or replace them, up to a budget. Every decision depends only
// on (seed, epoch, sample). Used by ImageLoader: its threads draw replacements, its consumer's thread owns the ledger.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/bad_sample.h"

namespace stoker::data {

enum class OnBad {
  kRaise,    // DataError at the batch of the sample
  kSkip,     // left out of the batch
  kReplace,  // replaced by another sample, which is drawn
};

struct BadSampleOptions {
  OnBad on_bad = OnBad::kRaise;
  double budget = 0.001;                  // share of the split's samples that may be bad; if positive, at least one
  core::BadSampleListener listener = {};  // may be empty
};

// Maximum number of draws for a replacement.
inline constexpr int kStandIns = 16;

// The position, in a split of `samples` samples (at least 1), of the replacement for sample `index` of its source. try:
// 0 ... kStandIns - 1.
[[nodiscard]] std::int64_t stand_in(std::uint64_t seed, std::int64_t epoch, std::int64_t index, int attempt,
                                    std::int64_t samples);

// A decoder's message without the name of the sample: "[data.jpeg] a/1.jpg: is empty" becomes "is empty".
[[nodiscard]] std::string without_name(std::string_view message, std::string_view name);

class BadSampleLedger {
 public:
  // samples: in the split. ConfigError for a budget outside 0 ... 1.
  BadSampleLedger(BadSampleOptions options, std::int64_t samples);

  [[nodiscard]] OnBad on_bad() const { return options_.on_bad; }
  // Counts the sample and calls the listener.
  void add(const core::BadSample& bad);
  // DataError that lists ten of them if more different samples are bad than the budget allows.
  void check_budget() const;

 private:
  BadSampleOptions options_;
  std::int64_t samples_, allowed_;
  std::map<std::int64_t, std::string> reasons_;  // of each bad sample, by index
};

}  // namespace stoker::data
