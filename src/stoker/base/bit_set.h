// SPDX-License-Identifier: Apache-2.0
// A set of integers below a size in 1.06 bits per number, with constant-time access to its k-th member and to its k-th
// non-member. Used for splits, where a list of 64-bit numbers would take gigabytes. Thread-safe after seal().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

class BitSet {
 public:
  explicit BitSet(std::int64_t size);

  // number: 0 ... size - 1. Before seal() only.
  void insert(std::int64_t number) { words_[static_cast<std::size_t>(number) / kWord] |= bit(number); }
  // Counts the members; the functions below need it.
  void seal();

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t members() const { return before_.back(); }
  [[nodiscard]] bool contains(std::int64_t number) const {
    return (words_[static_cast<std::size_t>(number) / kWord] & bit(number)) != 0;
  }
  // The k-th of the numbers that are in the set (or, with inside = false, are not), ascending; k from 0, below their
  // count.
  [[nodiscard]] std::int64_t select(std::int64_t k, bool inside) const;

 private:
  static constexpr std::size_t kWord = 64;   // bits
  static constexpr std::size_t kBlock = 16;  // words
  static std::uint64_t bit(std::int64_t number) {
    return std::uint64_t{1} << (static_cast<std::size_t>(number) % kWord);
  }

  std::int64_t size_;
  std::vector<std::uint64_t> words_;  // whole blocks
  std::vector<std::int64_t> before_;  // members before each block, and at last all
};

}  // namespace stoker
