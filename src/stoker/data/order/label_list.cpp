// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/label_list.h"

#include <algorithm>
#include <limits>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

template <typename T>
std::vector<T> expanded(std::span<const LabelRun> runs, std::int64_t size) {
  std::vector<T> labels;
  labels.reserve(static_cast<std::size_t>(size));
  for (const LabelRun& run : runs) {
    labels.insert(labels.end(), static_cast<std::size_t>(run.count), static_cast<T>(run.label));
  }
  return labels;
}

}  // namespace

LabelList::LabelList(std::span<const LabelRun> given) {
  LabelRuns joined;
  std::uint32_t most = 0;
  for (const LabelRun& run : given) {
    joined.add(run.count, run.label);
    size_ += run.count;
    most = std::max(most, run.label);
  }
  constexpr std::size_t kRun = sizeof(std::int64_t) + sizeof(std::uint32_t);  // bytes
  const std::size_t width = most <= 0xFF ? 1 : most <= 0xFFFF ? 2 : 4;
  Storage storage;
  constexpr std::size_t kSmall = std::size_t{1} << 20;  // bytes; smaller lists are faster than runs
  const std::size_t expanded_bytes = static_cast<std::size_t>(size_) * width;
  if (expanded_bytes > kSmall && joined.runs().size() * kRun <= expanded_bytes) {
    std::int64_t end = 0;
    for (const LabelRun& run : joined.runs()) {
      storage.ends.push_back(end += run.count);
      storage.runs.push_back(run.label);
    }
    storage.ends.shrink_to_fit();
    storage.runs.shrink_to_fit();
  } else if (width == 1) {
    storage.bytes = expanded<std::uint8_t>(joined.runs(), size_);
  } else if (width == 2) {
    storage.words = expanded<std::uint16_t>(joined.runs(), size_);
  } else {
    storage.wide = expanded<std::uint32_t>(joined.runs(), size_);
  }
  storage_ = std::make_shared<const Storage>(std::move(storage));
}

LabelList LabelList::of(std::span<const std::int64_t> labels) {
  LabelRuns runs;
  for (const std::int64_t label : labels) {
    if (label < 0 || label > std::numeric_limits<std::uint32_t>::max()) {
      fail<ConfigError>("data.labels", "a class must be 0 to 2^32 - 1, got {}", label);
    }
    runs.add(1, static_cast<std::uint32_t>(label));
  }
  return LabelList(runs.runs());
}

std::int64_t LabelList::run_at(std::int64_t position) const {
  const auto run = std::ranges::upper_bound(storage_->ends, position) - storage_->ends.begin();
  return storage_->runs[static_cast<std::size_t>(run)];
}

std::int64_t LabelList::operator[](std::int64_t position) const {
  const auto at = static_cast<std::size_t>(position);
  return !storage_->ends.empty()    ? run_at(position)
         : !storage_->bytes.empty() ? storage_->bytes[at]
         : !storage_->words.empty() ? storage_->words[at]
                                    : storage_->wide[at];
}

std::vector<std::int64_t> LabelList::counts(std::size_t classes) const {
  std::vector<std::int64_t> counts(classes);
  each_run([&](std::int64_t, std::int64_t count, std::int64_t label) {
    counts.at(static_cast<std::size_t>(label)) += count;
  });
  return counts;
}

LabelList LabelList::renamed(std::span<const std::int64_t> ids) const {
  LabelRuns runs;
  each_run([&](std::int64_t, std::int64_t count, std::int64_t label) {
    runs.add(count, static_cast<std::uint32_t>(ids[static_cast<std::size_t>(label)]));
  });
  return LabelList(runs.runs());
}

}  // namespace stoker::data
