// SPDX-License-Identifier: Apache-2.0
#include "op_count.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <utility>

namespace stoker::bench {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int> calls;
};

// Global: torch's callbacks are plain functions, and another thread may still be in one after the work is done.
Counts& counts() {
  static Counts here;
  return here;
}

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
  const std::lock_guard lock(counts().mutex);
  ++counts().calls[call.name()];
  return nullptr;
}

// Counts during its lifetime, also if the work throws.
class Counting {
 public:
  Counting()
      : handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(&see).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  }
  ~Counting() { at::removeCallback(handle_); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  at::CallbackHandle handle_;
};

std::map<std::string, int> take() {
  const std::lock_guard lock(counts().mutex);
  return std::exchange(counts().calls, {});
}

}  // namespace

std::map<std::string, int> count_operators(const std::function<void()>& work) {
  (void)take();  // drops counts from before an exception
  {
    const Counting counting;
    work();
  }
  return take();
}

}  // namespace stoker::bench
