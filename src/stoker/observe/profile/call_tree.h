// SPDX-License-Identifier: Apache-2.0
// Which call was made by which, from their times: on each thread calls nest. Gives each call its own (self) time, and
// finds the innermost call at a moment. Used by profile_table(). Thread-safe once it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/observe/profile/recorded.h"

namespace stoker::observe::profile {

class CallTree {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // ranges_only: operators are left out, so that a range keeps the time of its operators. calls outlive the tree.
  explicit CallTree(std::span<const Call> calls, bool ranges_only = false);

  // The call that made it; kNone: none, or it is left out.
  [[nodiscard]] std::size_t parent(std::size_t call) const { return parents_[call]; }
  // Its time without that of the calls it made, ns; 0 if it is left out.
  [[nodiscard]] std::int64_t self_ns(std::size_t call) const { return self_[call]; }
  // In the order of their begin, a parent before its children.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
  // The innermost call on a thread at a time; kNone: none.
  [[nodiscard]] std::size_t innermost(std::uint64_t thread, std::int64_t time) const;

 private:
  std::span<const Call> calls_;
  std::vector<std::size_t> order_;  // by thread, then begin
  std::vector<std::size_t> parents_;
  std::vector<std::int64_t> self_;
};

}  // namespace stoker::observe::profile
