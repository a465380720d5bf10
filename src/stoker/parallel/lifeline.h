// SPDX-License-Identifier: Apache-2.0
// The word of ranks that fail: by the store, beside the main threads, which compute or wait for each other. A rank that
// leaves tells the others; when a collective fails without a word, the ranks that live tell where they stand, and the
// error names the others. Keeps the record of the last collectives, and writes it then. Used by ProcessGroup. Every
// member may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/parallel/departure.h"
#include "stoker/parallel/device_group.h"
#include "stoker/parallel/member.h"
#include "stoker/parallel/store.h"

namespace stoker::parallel {

struct LifelineOptions {
  int rank = 0;
  std::vector<Member> members;        // by rank
  std::string store;                  // where it is, for people
  std::chrono::milliseconds timeout;  // if others left, and this rank did not notice for so long, its process ends
  std::shared_ptr<DeviceGroup> device = nullptr;  // cut off where it waits for a rank that is gone; null: none
};

class Lifeline {
 public:
  // Looks into the store four times a second. The thread that makes it outlives it: its stack is recorded if it hangs.
  Lifeline(std::unique_ptr<Store> store, LifelineOptions options);
  // Does not wait for a store that does not answer.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  // Throws the error of a rank that left before the next collective of all ranks.
  void check();
  // The same, and a collective begins; operation: a literal; counts: all ranks take part. Returns its place for end().
  std::int64_t begin(std::string_view operation, std::int64_t bytes, bool counts);
  // It is done, or has failed.
  void end(std::int64_t place, bool failed = false);
  // This rank leaves. Returns when its connections may be closed: the others have completed all that it took part in,
  // or two seconds are over. What they have begun since then ends by that closing.
  void leave(const std::exception& error);
  // A collective failed. Throws the error of a rank that left; else a RankError that names the ranks that are gone or
  // hang. Within four seconds, also if the store does not answer.
  [[noreturn]] void explain(const std::string& what);
  // The folder for the record of the last collectives; empty: none is written.
  void keep_record_in(const std::filesystem::path& folder);
  // Nobody can hear of a failure any more; empty: the store answers.
  [[nodiscard]] std::string trouble() const;

 private:
  class Watch;
  std::shared_ptr<Watch> watch_;  // shared with its thread, which may be blocked in the store for ever
};

}  // namespace stoker::parallel
