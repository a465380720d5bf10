// SPDX-License-Identifier: Apache-2.0
// Sets the number of torch's intra-op threads for a scope: comparisons need the same number on both sides, and
// exceptions must not leave it changed. Used by this room's tables. Process-wide; scopes may nest but not overlap.
#pragma once

namespace stoker::study {

// The requested number; for 0 one thread per core that this process may use.
[[nodiscard]] int intra_op_threads(int asked);

class IntraOp {
 public:
  explicit IntraOp(int threads);
  ~IntraOp();  // restores the previous number
  IntraOp(const IntraOp&) = delete;
  IntraOp& operator=(const IntraOp&) = delete;

 private:
  int before_;
};

}  // namespace stoker::study
