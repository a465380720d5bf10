// SPDX-License-Identifier: Apache-2.0
// How many threads an operator of torch uses, for a scope: what is measured side by side must not differ in it, and
// what throws must not leave it behind. Used by this room's tables. Process-wide; one scope at a time, or one in
// another.
#pragma once

namespace stoker::study {

// As asked; for 0 as many as this process may use cores.
[[nodiscard]] int intra_op_threads(int asked);

class IntraOp {
 public:
  explicit IntraOp(int threads);
  ~IntraOp();  // puts back what was
  IntraOp(const IntraOp&) = delete;
  IntraOp& operator=(const IntraOp&) = delete;

 private:
  int before_;
};

}  // namespace stoker::study
