// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/error_kind.h"

#include <algorithm>
#include <array>

#include "stoker/base/error.h"

namespace stoker {
namespace {

struct Kind {
  std::string_view name;
  bool (*is)(const std::exception& error);
  void (*raise)(std::string_view where, std::string_view what);
};

template <typename E>
constexpr Kind kind(std::string_view name) {
  return {name, [](const std::exception& error) { return dynamic_cast<const E*>(&error) != nullptr; },
          [](std::string_view where, std::string_view what) { throw E(where, what); }};
}

constexpr std::array kKinds{kind<ConfigError>("config"),
                            kind<DataError>("data"),
                            kind<DeviceError>("device"),
                            kind<OutOfMemory>("memory"),
                            kind<CheckpointError>("checkpoint"),
                            kind<IoError>("io"),
                            kind<RankError>("rank")};

}  // namespace

std::string_view error_kind(const std::exception& error) {
  const auto* const found = std::ranges::find_if(kKinds, [&](const Kind& each) { return each.is(error); });
  return found == kKinds.end() ? "other" : found->name;
}

void throw_error_of(std::string_view kind, std::string_view where, std::string_view what) {
  if (const auto* const found = std::ranges::find(kKinds, kind, &Kind::name); found != kKinds.end()) {
    found->raise(where, what);
  }
  throw Error(where, what);
}

}  // namespace stoker
