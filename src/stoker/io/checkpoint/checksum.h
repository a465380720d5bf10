// SPDX-License-Identifier: Apache-2.0
// XXH3 with 128 bits (xxhash.com), the checksum of checkpoints: it detects damage but is not a signature. Used by the
// checkpoint store. A Checksum belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace stoker::io {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  void add(std::span<const std::byte> bytes);
  // 32 hexadecimal digits, high half first, of everything added so far.
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string checksum_of(std::span<const std::byte> bytes);

}  // namespace stoker::io
