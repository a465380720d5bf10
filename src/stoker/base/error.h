// SPDX-License-Identifier: Apache-2.0
// The typed errors of every room. A message names where it happened, what came, what was expected and what to do:
//   [data.loader] batch must be positive, got 0; set batch=N
// Only apps/ turns them into exit codes. Expected outcomes (a skipped step, an empty epoch) are values, not errors.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "stoker/base/fmt.h"

namespace stoker {

class Error : public std::runtime_error {
 public:
  // where: room and concept, e.g. "data.tar"; what: the sentence after it.
  Error(std::string_view where, std::string_view what) : std::runtime_error(fmt::format("[{}] {}", where, what)) {}
};

// A request that cannot be done: an unknown key, a bad value, values that contradict each other. Exit code 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};
// A sample, table, archive or folder is not as expected. Exit code 65.
class DataError : public Error {
 public:
  using Error::Error;
};
// A device is missing, busy, too old, or holds the wrong tensors. Exit code 71.
class DeviceError : public Error {
 public:
  using Error::Error;
};
// Memory ran out, on the host or on a device. Exit code 71.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};
// A checkpoint or weights file is damaged, of another program, or does not fit. Exit code 65.
class CheckpointError : public Error {
 public:
  using Error::Error;
};
// The operating system rejected a read or a write: no permission, disk full. Exit code 74.
class IoError : public Error {
 public:
  using Error::Error;
};
// Another rank failed, is gone, or does not answer: the run goes on from its last checkpoint. Exit code 75.
class RankError : public Error {
 public:
  using Error::Error;
};

// fail<DataError>("data.tar", "{}: header checksum is wrong", path) formats and throws.
template <typename E, typename... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  throw E(where, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace stoker
