// SPDX-License-Identifier: Apache-2.0
// What becomes of samples that cannot be had: the run ends, or goes on without them or with others in their place, up
// to a budget. Every decision depends on (seed, epoch, sample) alone. Used by ImageLoader: its threads draw stand-ins,
// its consumer's thread has the ledger.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/bad_sample.h"

namespace stoker::data {

enum class OnBad {
  kRaise,    // DataError at the batch the sample belongs to
  kSkip,     // the batch goes without it
  kReplace,  // another sample stands in, drawn for it
};

struct BadSampleOptions {
  OnBad on_bad = OnBad::kRaise;
  double budget = 0.001;                  // share of the split's samples that may be bad; one may be in any case
  core::BadSampleListener listener = {};  // may be empty
};

// How often a stand-in is drawn until one can be had.
inline constexpr int kStandIns = 16;

// The position in a split of `samples` samples (at least 1) that stands in for sample `index` of its source, try
// 0 ... kStandIns - 1.
[[nodiscard]] std::int64_t stand_in(std::uint64_t seed, std::int64_t epoch, std::int64_t index, int attempt,
                                    std::int64_t samples);

// A decoder's message on a sample without the sample's name: "[data.jpeg] a/1.jpg: is empty" to "is empty".
[[nodiscard]] std::string without_name(std::string_view message, std::string_view name);

class BadSampleLedger {
 public:
  // samples: of the split. ConfigError for a budget outside 0 ... 1.
  BadSampleLedger(BadSampleOptions options, std::int64_t samples);

  [[nodiscard]] OnBad on_bad() const { return options_.on_bad; }
  // Counts it and tells the listener. DataError that lists ten of them when more different samples are bad than
  // the budget has.
  void add(const core::BadSample& bad);

 private:
  BadSampleOptions options_;
  std::int64_t samples_, allowed_;
  std::map<std::int64_t, std::string> reasons_;  // of each bad sample, by index
};

}  // namespace stoker::data
