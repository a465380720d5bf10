// SPDX-License-Identifier: Apache-2.0
// What each rank of a run did, from its metrics.jsonl, in bounded memory: sums of the records since the ranks became as
// many as they are. Filled by read_run_log(). One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::io {

class RanksLog {
 public:
  static constexpr std::size_t kMostRanks = 1024;  // that are read
  static constexpr std::size_t kMostRows = 64;     // of a page: those that waited least; as many buckets

  // Records "ranks"; others, and what is damaged, change nothing.
  void add(const nlohmann::ordered_json& event);

  // For the page, milliseconds of a step; null if nothing was recorded.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Row {  // seconds; -1: unknown
    std::string host;
    double computed = -1, data = -1, delayed = -1, saving = -1, waited = -1;
  };
  struct Bucket {
    std::int64_t bytes = 0, steps = 0;
    double seconds = 0;
  };
  void add_buckets(const nlohmann::ordered_json& event);

  std::vector<Row> rows_;
  std::vector<Bucket> buckets_;
  std::int64_t steps_ = 0;
  double seconds_ = 0, exposed_ = 0;
};

}  // namespace stoker::io
