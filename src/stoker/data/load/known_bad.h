// SPDX-License-Identifier: Apache-2.0
// Remembers unreadable images of one source: an image that an earlier run found bad is not tried again while its file
// is unchanged. An image is remembered only if every part of it is bad, so that runs with and without the list have the
// same batches. Used by SampleReader. Thread-safe.
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
  std::filesystem::path cache;  // folder of the list; empty: no list
  int channels = 3;             // of decoded images
  bool strict = true;           // as in DecodeLimits; each value has its own list
  bool retry = false;           // try all images again; images that are still bad are kept
  std::int64_t (*clock)() = &file_clock;
};

class KnownBad {
 public:
  // Reads the list for the location of this source; ignores a damaged or foreign list.
  KnownBad(std::shared_ptr<const ByteSource> source, KnownBadOptions options);
  KnownBad(const KnownBad&) = delete;
  KnownBad& operator=(const KnownBad&) = delete;
  ~KnownBad();  // writes new entries

  // DataError with the stored reason if the sample was found bad before and is unchanged.
  void refuse(std::int64_t index) const;
  // Call for a sample that has just failed to decode; reason: the message of the error. Tries it again, and remembers
  // it if no part of it can be read and its file is not changing. Never throws.
  void learn(std::int64_t index, std::string_view reason);

  // Number of refused samples.
  [[nodiscard]] std::int64_t known() const { return static_cast<std::int64_t>(known_.size()); }

 private:
  struct Entry {
    std::string key;
    SampleFile file;
    std::string reason;
  };
  [[nodiscard]] std::vector<Entry> read() const;
  // The sample with that path at that place in its file, whose stamp may have changed; -1 if there is none.
  [[nodiscard]] std::int64_t find(const Entry& entry) const;
  [[nodiscard]] bool is_hopeless(std::int64_t index) const;
  void write();

  std::shared_ptr<const ByteSource> source_;
  KnownBadOptions options_;
  std::filesystem::path file_;                           // the list, for all sources of one location; empty: none
  std::unordered_map<std::int64_t, std::string> known_;  // reason by index; does not change
  std::mutex mutex_;                                     // guards the members below
  std::unordered_map<std::int64_t, Entry> found_;        // found by this run, and known before
  std::int64_t written_at_ = 0;                          // clock
  bool changed_ = false;
};

}  // namespace stoker::data
