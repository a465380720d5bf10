// SPDX-License-Identifier: Apache-2.0
#include "op_count.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>

namespace stoker::bench {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int> calls;
};
Counts* counts = nullptr;  // torch's callbacks are plain functions

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
  const std::lock_guard lock(counts->mutex);
  ++counts->calls[call.name()];
  return nullptr;
}

}  // namespace

std::map<std::string, int> count_operators(const std::function<void()>& work) {
  Counts here;
  counts = &here;
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&see).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  work();
  at::removeCallback(handle);
  return std::move(here.calls);
}

}  // namespace stoker::bench
