// SPDX-License-Identifier: Apache-2.0
// Failures of operator new in a test program that links failing_new: all allocations fail (NoMemory), or the k-th one
// of some threads (FailingNew). For tests of code that must continue without memory. A thread that holds a MayAllocate
// is never affected. One NoMemory or FailingNew at a time. Memory from malloc or with extended alignment never fails.
#pragma once

#include <cstdint>

namespace stoker::testing {

// While it exists, operator new throws std::bad_alloc on every thread.
class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

// Exempts the thread that holds it.
class MayAllocate {
 public:
  MayAllocate();
  ~MayAllocate();
  MayAllocate(const MayAllocate&) = delete;
  MayAllocate& operator=(const MayAllocate&) = delete;
};

enum class Whose {
  kMine,    // of the thread that made the FailingNew
  kOthers,  // of all threads but that
  kChosen,  // of threads that called choose_this_thread()
};

// For the rest of the thread's life.
void choose_this_thread();

// Counts the allocations of some threads, and lets one fail.
class FailingNew {
 public:
  explicit FailingNew(Whose whose);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  void fail_at(std::int64_t k);    // the k-th from now on, once; k is at least 1
  void fail_from(std::int64_t k);  // the k-th from now on and all later ones
  void stop();                     // no failures from now on
  [[nodiscard]] bool failed() const;
};

// Calls body with a failure at the first allocation, at the second, and so on, until a call comes to its end without a
// failure. Returns the number of calls with one.
template <typename Body>
int at_every_new(Whose whose, const Body& body) {
  for (int k = 1;; ++k) {
    FailingNew failing(whose);
    failing.fail_at(k);
    body();
    failing.stop();
    if (!failing.failed()) {
      return k - 1;
    }
  }
}

}  // namespace stoker::testing
