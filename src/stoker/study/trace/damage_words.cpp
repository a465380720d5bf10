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
      words.push_back(fmt::format("{} {}", number, text));
    }
  };
  count(damage.malformed, fmt::format("events are not valid JSON, the first at byte {} ({})", damage.first_malformed,
                                      damage.malformed_why));
  count(damage.without_time, "events have no time that is a number");
  count(damage.negative, "events have a negative duration");
  count(damage.out_of_range, "events have a time beyond 2^63 ns");
  count(damage.unpaired, "begins or ends have no partner");
  count(damage.not_utf8, "events have names that are not UTF-8; bad bytes are shown as ?");
  return words;
}

}  // namespace stoker::study
