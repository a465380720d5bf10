// SPDX-License-Identifier: Apache-2.0
// The paths of a source's samples, one after the other in one piece of memory: its own, or a mapped file's, so that
// many millions take none of the process's. Copies share. Thread-safe: immutable.
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
  // ends: for each key a 64-bit number, little endian: the byte of text after its last; ascending, at most text's size.
  // owner keeps both.
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
