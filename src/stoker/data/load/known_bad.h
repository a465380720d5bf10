// SPDX-License-Identifier: Apache-2.0
// Images of one source that no run can read: what an earlier run found bad, and whose file is unchanged, is refused
// without another try. An image is remembered only where every part of it is bad, so that a run with the list has the
// same batches as one without. Used by SampleReader. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/data/folder/byte_source.h"

namespace stoker::data {

struct KnownBadOptions {
  std::filesystem::path cache;  // folder that keeps the list; empty: none does
  int channels = 3;             // that images are decoded to
  bool strict = true;           // as DecodeLimits: what is bad by a warning only has a list of its own
  bool retry = false;           // try them all; those found bad again are kept
  std::int64_t (*clock)() = &file_clock;
};

class KnownBad {
 public:
  // Reads the list of this source's place; a damaged or foreign one is as none.
  KnownBad(std::shared_ptr<const ByteSource> source, KnownBadOptions options);
  KnownBad(const KnownBad&) = delete;
  KnownBad& operator=(const KnownBad&) = delete;
  ~KnownBad();  // writes what is new

  // DataError with the reason of then if the sample was found bad before and is unchanged.
  void refuse(std::int64_t index) const;
  // To be told of a sample that has just failed to decode; reason: the error's message. Looks at it once more, and
  // remembers it if no part of it can be had and its file is not changing. Never throws.
  void learn(std::int64_t index, std::string_view reason);

  // So many are refused.
  [[nodiscard]] std::int64_t known() const { return static_cast<std::int64_t>(known_.size()); }

 private:
  struct Entry {
    std::string key;
    SampleFile file;
    std::string reason;
  };
  [[nodiscard]] std::vector<Entry> read() const;
  // The sample of that path at that place in its file, whose stamp may be another by now; -1 if there is none.
  [[nodiscard]] std::int64_t find(const Entry& entry) const;
  [[nodiscard]] bool is_hopeless(std::int64_t index) const;
  void write();

  std::shared_ptr<const ByteSource> source_;
  KnownBadOptions options_;
  std::filesystem::path file_;                           // the list, of all sources of one place; empty: none is kept
  std::unordered_map<std::int64_t, std::string> known_;  // reason by index; does not change
  std::mutex mutex_;                                     // guards what follows
  std::unordered_map<std::int64_t, Entry> found_;        // by this run, and what was known
  std::int64_t written_at_ = 0;                          // clock
  bool changed_ = false;
};

}  // namespace stoker::data
