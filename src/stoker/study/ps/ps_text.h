// SPDX-License-Identifier: Apache-2.0
// What `stoker ps` prints: the holders as a text for people and as JSON. Thread-safe: no state.
#pragma once

#include <string>

#include "stoker/study/ps/holders.h"

namespace stoker::study {

[[nodiscard]] std::string holders_text(const Holders& holders);
// docs/observe.md describes its keys.
[[nodiscard]] std::string holders_json(const Holders& holders);

// "3 d 4 h", "12 min", "8 s".
[[nodiscard]] std::string age_text(double seconds);

}  // namespace stoker::study
