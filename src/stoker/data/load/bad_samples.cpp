// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/bad_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker::data {

std::int64_t stand_in(std::uint64_t seed, std::int64_t epoch, std::int64_t index, int attempt, std::int64_t samples) {
  CounterRng random(seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(index), RandomOp::kStandIn,
                    static_cast<std::uint16_t>(attempt));
  // A draw of 64 bits, so that splits beyond 2^32 work; the bias is below samples / 2^64.
  const std::uint64_t high = random.next(), low = random.next();
  return static_cast<std::int64_t>(((high << 32) | low) % static_cast<std::uint64_t>(samples));
}

std::string without_name(std::string_view message, std::string_view name) {
  const std::string named = fmt::format("{}: ", name);
  const std::size_t at = message.find(named);
  return std::string(at == std::string_view::npos ? message : message.substr(at + named.size()));
}

BadSampleLedger::BadSampleLedger(BadSampleOptions options, std::int64_t samples)
    : options_(std::move(options)), samples_(samples) {
  if (!(options_.budget >= 0 && options_.budget <= 1)) {
    fail<ConfigError>("data.loader", "bad_budget must be a share from 0 to 1, got {}", options_.budget);
  }
  const double share = std::floor(options_.budget * static_cast<double>(samples));
  allowed_ = options_.budget > 0 ? std::max<std::int64_t>(1, static_cast<std::int64_t>(share)) : 0;
}

void BadSampleLedger::add(const core::BadSample& bad) {
  reasons_.emplace(bad.index, fmt::format("{}: {}", bad.name, bad.reason));
  if (options_.listener) {
    options_.listener(bad);
  }
}

void BadSampleLedger::check_budget() const {
  const auto count = static_cast<std::int64_t>(reasons_.size());
  if (count <= allowed_) {
    return;
  }
  constexpr std::size_t kNamed = 10;
  std::vector<std::string> named;
  for (auto each = reasons_.begin(); each != reasons_.end() && named.size() < kNamed; ++each) {
    named.push_back(each->second);
  }
  fail<DataError>(
      "data.loader",
      "{} of {} samples are unreadable so far, {} allowed; repair or remove them (`stoker inspect` lists all bad "
      "images), or set a larger bad_budget: {}{}",
      count, samples_, allowed_ == 1 ? "1 is" : fmt::format("{} are", allowed_), fmt::join(named, "; "),
      reasons_.size() > kNamed ? fmt::format("; and {} more", reasons_.size() - kNamed) : "");
}

}  // namespace stoker::data
