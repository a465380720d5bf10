// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/departure.h"

#include <sstream>
#include <string_view>

#include "stoker/base/error_kind.h"
#include "stoker/base/fmt.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.ranks";

}  // namespace

Departure departure_of(int rank, std::int64_t collectives, const std::exception& error) {
  return {rank, collectives, std::string(error_kind(error)), error.what()};
}

std::string to_text(const Departure& departure) {
  return fmt::format("{} {} {} {}", departure.rank, departure.collectives, departure.kind, departure.reason);
}

Departure departure_from(const std::string& text) {
  Departure departure;
  std::istringstream words(text);
  words >> departure.rank >> departure.collectives >> departure.kind;
  words.get();
  std::getline(words, departure.reason, '\0');
  return departure;
}

void throw_departure(const Departure& departure) {
  if (departure.kind == "rank") {  // its message names the rank that is gone
    const std::size_t end = departure.reason.find("] ");
    throw_error_of(departure.kind, kWhere, departure.reason.substr(end == std::string::npos ? 0 : end + 2));
  }
  throw_error_of(departure.kind, kWhere, fmt::format("rank {} failed: {}", departure.rank, departure.reason));
}

}  // namespace stoker::parallel
