// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/fmt.h"
#include "stoker/study/trace/report.h"

namespace stoker::study {

std::vector<std::string> damage_words(const observe::trace::Damage& damage) {
  std::vector<std::string> words;
  if (!damage.end.empty()) {
    words.push_back(damage.end + "; later events are missing");
  }
  const auto count = [&](std::int64_t number, const std::string& text) {
    if (number > 0) {
      words.push_back(fmt::format("{}: {}", text, number));
    }
  };
  count(damage.malformed, fmt::format("events left out that are not valid JSON (the first at byte {}: {})",
                                      damage.first_malformed, damage.malformed_why));
  count(damage.without_time, "events left out because their time is no number");
  count(damage.negative, "events left out because their duration is negative");
  count(damage.out_of_range, "events left out because their time or duration is too large");
  count(damage.unpaired, "begins without an end, or ends without a begin");
  count(damage.not_utf8, "events whose names are not UTF-8; their bad bytes are shown as ?");
  return words;
}

}  // namespace stoker::study
