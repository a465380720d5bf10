// SPDX-License-Identifier: Apache-2.0
// The samples of a source that belong to a split, ascending: all of them without memory, or a part with about one bit
// per sample of the source, shared by the chosen part and the rest. Copies share memory. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/base/bit_set.h"

namespace stoker::data {

// An iterator over anything with size() and operator[].
template <typename List>
class ListIterator {
 public:
  using value_type = std::int64_t;
  using difference_type = std::ptrdiff_t;
  ListIterator() = default;
  ListIterator(const List* list, std::int64_t at) : list_(list), at_(at) {}
  std::int64_t operator*() const { return (*list_)[at_]; }
  ListIterator& operator++() {
    ++at_;
    return *this;
  }
  ListIterator operator++(int) { return {list_, at_++}; }
  bool operator==(const ListIterator& other) const { return at_ == other.at_; }

 private:
  const List* list_ = nullptr;
  std::int64_t at_ = 0;
};

class SampleList {
 public:
  SampleList() = default;
  // 0 ... count - 1.
  static SampleList first(std::int64_t count) { return SampleList(nullptr, true, count); }
  // The members of a sealed set, or the numbers below its size that are not members.
  static SampleList of(std::shared_ptr<const BitSet> set, bool inside) {
    const std::int64_t count = inside ? set->members() : set->size() - set->members();
    return SampleList(std::move(set), inside, count);
  }

  [[nodiscard]] std::int64_t size() const { return count_; }
  // Whether they are 0 ... size() - 1.
  [[nodiscard]] bool all() const { return set_ == nullptr; }
  // position: 0 ... size() - 1.
  [[nodiscard]] std::int64_t operator[](std::int64_t position) const {
    return set_ ? set_->select(position, inside_) : position;
  }
  [[nodiscard]] ListIterator<SampleList> begin() const { return {this, 0}; }
  [[nodiscard]] ListIterator<SampleList> end() const { return {this, count_}; }

 private:
  SampleList(std::shared_ptr<const BitSet> set, bool inside, std::int64_t count)
      : set_(std::move(set)), inside_(inside), count_(count) {}

  std::shared_ptr<const BitSet> set_;  // null: all numbers below count_
  bool inside_ = true;
  std::int64_t count_ = 0;
};

}  // namespace stoker::data
