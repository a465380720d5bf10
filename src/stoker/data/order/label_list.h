// SPDX-License-Identifier: Apache-2.0
// The class of each sample of a split: as runs of equal classes (class folders sorted by path have few runs), or as
// one, two or four bytes per sample if that is smaller. Copies share memory. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stoker/data/order/sample_list.h"

namespace stoker::data {

struct LabelRun {
  std::int64_t count = 0;
  std::uint32_t label = 0;
  bool operator==(const LabelRun&) const = default;
};

class LabelList {
 public:
  LabelList() = default;
  // Classes of consecutive samples; adjacent runs of the same class are joined.
  explicit LabelList(std::span<const LabelRun> runs);
  // One number per sample, each in 0 ... 2^32 - 1.
  static LabelList of(std::span<const std::int64_t> labels);

  [[nodiscard]] std::int64_t size() const { return size_; }
  // position: 0 ... size() - 1.
  [[nodiscard]] std::int64_t operator[](std::int64_t position) const;
  [[nodiscard]] ListIterator<LabelList> begin() const { return {this, 0}; }
  [[nodiscard]] ListIterator<LabelList> end() const { return {this, size_}; }

  // Calls take(first position, count, label) for each run of equal classes.
  template <typename Take>
  void each_run(const Take& take) const;
  // Number of samples of each class, for `classes` classes.
  [[nodiscard]] std::vector<std::int64_t> counts(std::size_t classes) const;
  // With renamed classes: ids[label] instead of label.
  [[nodiscard]] LabelList renamed(std::span<const std::int64_t> ids) const;

 private:
  struct Storage {
    std::vector<std::int64_t> ends;   // the end position of each run ...
    std::vector<std::uint32_t> runs;  // ... and its class; both empty if a list below has one class per sample
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint16_t> words;
    std::vector<std::uint32_t> wide;
  };
  [[nodiscard]] std::int64_t run_at(std::int64_t position) const;

  std::int64_t size_ = 0;
  std::shared_ptr<const Storage> storage_;  // null: empty
};

// Joins adjacent runs of the same class.
class LabelRuns {
 public:
  void add(std::int64_t count, std::uint32_t label) {
    if (count == 0) {
      return;
    }
    if (!runs_.empty() && runs_.back().label == label) {
      runs_.back().count += count;
    } else {
      runs_.push_back({count, label});
    }
  }
  [[nodiscard]] const std::vector<LabelRun>& runs() const { return runs_; }

 private:
  std::vector<LabelRun> runs_;
};

template <typename Take>
void LabelList::each_run(const Take& take) const {
  if (storage_ && !storage_->ends.empty()) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < storage_->ends.size(); ++i) {
      take(first, storage_->ends[i] - first, std::int64_t{storage_->runs[i]});
      first = storage_->ends[i];
    }
    return;
  }
  for (std::int64_t first = 0, next = 0; first < size_; first = next) {
    const std::int64_t label = (*this)[first];
    while (next < size_ && (*this)[next] == label) {
      ++next;
    }
    take(first, next - first, label);
  }
}

}  // namespace stoker::data
