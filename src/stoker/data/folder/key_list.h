// SPDX-License-Identifier: Apache-2.0
// The paths of the samples of a source, in one block of memory: its own, or a mapped file, so that many millions of
// paths need no process memory. Copies share the block. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/file.h"

namespace stoker::data {

class KeyList {
 public:
  KeyList() = default;
  explicit KeyList(const std::vector<std::string>& keys);
  // ends: per key a 64-bit little-endian number, the end of the key in text; ascending, at most the size of text.
  // owner keeps both alive.
  KeyList(std::shared_ptr<const void> owner, Bytes ends, Bytes text)
      : owner_(std::move(owner)), ends_(ends), text_(text) {}

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(ends_.size() / sizeof(std::uint64_t)); }
  // index: 0 ... size() - 1.
  [[nodiscard]] std::string_view operator[](std::int64_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : end_of(index - 1);
    return as_text(text_.subspan(begin, end_of(index) - begin));
  }
  [[nodiscard]] Bytes ends() const { return ends_; }
  [[nodiscard]] Bytes text() const { return text_; }

 private:
  [[nodiscard]] std::uint64_t end_of(std::int64_t index) const;

  std::shared_ptr<const void> owner_;
  Bytes ends_, text_;
};

}  // namespace stoker::data
