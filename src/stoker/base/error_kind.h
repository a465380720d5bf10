// SPDX-License-Identifier: Apache-2.0
// Typed errors by name, for an error of one process that others throw, too: all then exit with the same code. Used by
// the ranks of a run. Thread-safe: no state.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace stoker {

// "config", "data", "device", "memory", "checkpoint", "io", "rank"; "other" for all other errors.
[[nodiscard]] std::string_view error_kind(const std::exception& error);
// Throws an Error of that kind. where, what: as in Error.
[[noreturn]] void throw_error_of(std::string_view kind, std::string_view where, std::string_view what);

}  // namespace stoker
