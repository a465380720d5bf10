// SPDX-License-Identifier: Apache-2.0
// A small table of texts that all ranks of a run share: c10d's file store or TCP store. The process group meets in it,
// and Lifeline tells in it who fails. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stoker/parallel/place.h"

namespace c10d {
class Store;
}

namespace stoker::parallel {

class Store {
 public:
  // Waits up to timeout for the server of a TCP store. ConfigError if there is none, or if the file or the port cannot
  // be used.
  Store(const Place& place, std::chrono::milliseconds timeout);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // RankError if the store cannot be reached any more.
  void set(const std::string& key, const std::string& value);
  // Adds to a number, 0 at first, and returns it.
  std::int64_t add(const std::string& key, std::int64_t amount);
  // Empty: nobody has set the key.
  [[nodiscard]] std::optional<std::string> get(const std::string& key);
  // Sleeps until the key is set. RankError after timeout.
  [[nodiscard]] std::string wait_for(const std::string& key, std::chrono::milliseconds timeout);

  // For ProcessGroup only; it may keep a reference of its own.
  [[nodiscard]] c10d::Store* get_torch() const;
  // A second connection, for another thread: a call on one does not wait for calls on the other. timeout: of a call, if
  // the store is gone.
  [[nodiscard]] std::unique_ptr<Store> clone(std::chrono::milliseconds timeout) const;

 private:
  struct Handle;
  explicit Store(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

}  // namespace stoker::parallel
