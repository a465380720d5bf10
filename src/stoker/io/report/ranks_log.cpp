// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/ranks_log.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/base/fmt.h"
#include "stoker/base/json_fields.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

// Calls use(index, object) for the objects of a list; false if it is none, or has another value or too many.
template <typename Use>
bool each_at(const Json& json, const char* key, std::size_t most, const Use& use) {
  const auto list = json.find(key);
  if (list == json.end() || !list->is_array() || list->size() > most ||
      !std::ranges::all_of(*list, [](const Json& each) { return each.is_object(); })) {
    return false;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    use(i, (*list)[i]);
  }
  return true;
}

void add_known(double& sum, const Json& json, const char* key) {
  if (const double more = real_at(json, key).value_or(-1); more >= 0 && std::isfinite(more)) {
    sum = std::max(sum, 0.0) + more;
  }
}

// Five digits; null: unknown.
Json figure(double value) {
  return value < 0 || !std::isfinite(value) ? Json() : Json(std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr));
}

}  // namespace

void RanksLog::add(const Json& event) {
  if (event.value("whole", Json()) == true) {
    add_buckets(event);
    return;
  }
  const std::int64_t steps = integer_at(event, "steps");
  const auto list = event.find("ranks");
  if (steps <= 0 || list == event.end() || !list->is_array() || list->empty() || list->size() > kMostRanks) {
    return;
  }
  if (rows_.size() != list->size()) {  // a resume with other ranks
    *this = RanksLog();
    rows_.resize(list->size());
  }
  const bool read = each_at(event, "ranks", kMostRanks, [&](std::size_t rank, const Json& each) {
    Row& row = rows_[rank];
    row.host = text_at(each, "host");
    add_known(row.computed, each, "computed");
    add_known(row.data, each, "data");
    add_known(row.delayed, each, "delayed");
    add_known(row.saving, each, "saving");
    add_known(row.waited, each, "waited");
  });
  if (read) {
    steps_ += steps;
    add_known(seconds_, event, "seconds");
    add_known(exposed_, event, "exposed");
  }
}

void RanksLog::add_buckets(const Json& event) {
  std::vector<Bucket> buckets;
  each_at(event, "buckets", SIZE_MAX, [&](std::size_t, const Json& each) {
    if (buckets.size() < kMostRows) {
      buckets.push_back({.bytes = integer_at(each, "bytes"),
                         .steps = integer_at(each, "steps"),
                         .seconds = real_at(each, "seconds").value_or(0)});
    }
  });
  buckets_ = std::move(buckets);
}

Json RanksLog::json() const {
  if (steps_ <= 0 || !(seconds_ > 0)) {
    return nullptr;
  }
  std::vector<std::size_t> shown(rows_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > kMostRows) {
    std::ranges::stable_sort(shown, {}, [&](std::size_t rank) { return rows_[rank].waited; });
    shown.resize(kMostRows);
  }
  const auto ms = [&](double seconds) {
    return figure(seconds < 0 ? -1 : 1e3 * seconds / static_cast<double>(steps_));
  };
  Json ranks = Json::array(), buckets = Json::array();
  for (const std::size_t rank : shown) {
    const Row& row = rows_[rank];
    ranks.push_back({rank, row.host, ms(row.computed), ms(row.data), ms(row.saving), ms(row.delayed), ms(row.waited)});
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& each = buckets_[i];
    const bool known = each.steps > 0 && each.seconds > 0;
    const double seconds = known ? each.seconds / static_cast<double>(each.steps) : -1;
    buckets.push_back({i, each.bytes, figure(known ? 1e3 * seconds : -1),
                       figure(known ? static_cast<double>(each.bytes) / seconds / 1e6 : -1)});
  }
  return {{"steps", steps_},
          {"exposed", figure(exposed_ / seconds_)},
          {"ranks", std::move(ranks)},
          {"left_out", rows_.size() - shown.size()},
          {"buckets", std::move(buckets)}};
}

}  // namespace stoker::io
