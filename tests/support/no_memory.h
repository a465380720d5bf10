// SPDX-License-Identifier: Apache-2.0
// A host without free memory, for tests of code that must continue there. While a NoMemory exists, operator new throws
// std::bad_alloc on every thread, except threads that hold a MayAllocate. Replaces operator new of the whole test
// program, so only one of its files may include this. One NoMemory at a time.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace stoker::testing {

inline std::atomic<bool> there_is_no_memory = false;
inline thread_local int may_allocate = 0;

class NoMemory {
 public:
  NoMemory() { there_is_no_memory = true; }
  ~NoMemory() { there_is_no_memory = false; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

class MayAllocate {
 public:
  MayAllocate() { ++may_allocate; }
  ~MayAllocate() { --may_allocate; }
  MayAllocate(const MayAllocate&) = delete;
  MayAllocate& operator=(const MayAllocate&) = delete;
};

}  // namespace stoker::testing

// Not inline, because g++ would warn that memory from malloc goes to delete. All forms for single objects, because a
// sanitizer provides its own version of each missing form.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  const bool none = stoker::testing::there_is_no_memory && stoker::testing::may_allocate == 0;
  return none ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
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
