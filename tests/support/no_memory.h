// SPDX-License-Identifier: Apache-2.0
// A host without memory, for tests of what must go on there: while a NoMemory lives, operator new throws std::bad_alloc
// on every thread but those that hold a MayAllocate. Replaces operator new of the whole test program: one of its files
// includes this. One NoMemory at a time.
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

// Out of line, where g++ would compare malloc with delete. All forms for one object, since a sanitizer brings its own
// for those that are left out.
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
