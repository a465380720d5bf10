// SPDX-License-Identifier: Apache-2.0
// Why a rank leaves the others before the end of a run, as text in the store and as the typed error that all ranks
// throw: so each exits with the same code, and says which rank failed. Without torch; values.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace stoker::parallel {

struct Departure {
  int rank = 0;
  std::int64_t collectives = 0;  // that it took part in: the next one can never complete
  std::string kind;              // "data", "config", ...: the type of its error
  std::string reason;            // its message
};

[[nodiscard]] Departure departure_of(int rank, std::int64_t collectives, const std::exception& error);
[[nodiscard]] std::string to_text(const Departure& departure);
[[nodiscard]] Departure departure_from(const std::string& text);  // of to_text()
// Throws the error of the rank that left, with its type.
[[noreturn]] void throw_departure(const Departure& departure);

}  // namespace stoker::parallel
