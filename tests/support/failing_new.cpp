// SPDX-License-Identifier: Apache-2.0
#include "support/failing_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace stoker::testing {
namespace {

std::atomic<bool> there_is_no_memory = false;
thread_local int may_allocate = 0;
thread_local bool chosen = false;
thread_local bool maker = false;  // of the FailingNew

enum class Watch { kNobody, kMine, kOthers, kChosen };
std::atomic<Watch> watch = Watch::kNobody;
std::atomic<std::int64_t> first = 0, last = 0, seen = 0;  // allocations first ... last of the watched threads fail
std::atomic<bool> has_failed = false;

constexpr std::int64_t kNever = INT64_MAX;

bool watched() {
  switch (watch.load()) {
    case Watch::kNobody: return false;
    case Watch::kMine: return maker;
    case Watch::kOthers: return !maker;
    case Watch::kChosen: return chosen;
  }
  return false;
}

bool fails() {
  if (may_allocate > 0) {
    return false;
  }
  if (there_is_no_memory) {
    return true;
  }
  if (!watched()) {
    return false;
  }
  const std::int64_t number = ++seen;
  const bool now = number >= first && number <= last;
  if (now) {  // storing false would undo what another thread stored
    has_failed = true;
  }
  return now;
}

void plan(std::int64_t from, std::int64_t to) {
  first = kNever;
  seen = 0;
  last = to;
  first = from;
}

}  // namespace

NoMemory::NoMemory() { there_is_no_memory = true; }
NoMemory::~NoMemory() { there_is_no_memory = false; }
MayAllocate::MayAllocate() { ++may_allocate; }
MayAllocate::~MayAllocate() { --may_allocate; }

void choose_this_thread() { chosen = true; }

FailingNew::FailingNew(Whose whose) {
  maker = true;
  has_failed = false;
  plan(kNever, kNever);
  watch = whose == Whose::kMine ? Watch::kMine : whose == Whose::kOthers ? Watch::kOthers : Watch::kChosen;
}
FailingNew::~FailingNew() {
  watch = Watch::kNobody;
  maker = false;
}
void FailingNew::fail_at(std::int64_t k) { plan(k, k); }
void FailingNew::fail_from(std::int64_t k) { plan(k, kNever); }
void FailingNew::stop() { plan(kNever, kNever); }
bool FailingNew::failed() const { return has_failed; }

}  // namespace stoker::testing

// Not inline, because g++ would warn that memory from malloc goes to delete. All forms for single objects, because a
// sanitizer provides its own version of each missing form; the forms for arrays call these.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return stoker::testing::fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
