// SPDX-License-Identifier: Apache-2.0
// The value of the option recompute=, without a model. Parsed at the border, where options are checked. Values;
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::memory {

// What the backward pass computes again instead of keeping it from the forward pass.
struct RecomputeChoice {
  // "none". "all": each segment. "every:3": segments 0, 3, 6, ... Names: segments ("layer2"), groups of segments by
  // what stands before a dot ("layer2" for "layer2.0" and "layer2.1"), their parts in all segments ("attention") or in
  // one ("layer2/attention").
  enum class Kind { kNone, kAll, kEvery, kNames };
  Kind kind = Kind::kNone;
  int every = 1;                        // kEvery: at least 1
  std::vector<std::string> names = {};  // kNames
};

// ConfigError that lists the forms.
[[nodiscard]] RecomputeChoice parse_recompute(std::string_view text);
[[nodiscard]] bool is_recompute(std::string_view text);

}  // namespace stoker::memory
