// SPDX-License-Identifier: Apache-2.0
// Freed memory stays with the process: the kernel's count of page faults shows it.
#include "stoker/device/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdlib>

namespace stoker::device {
namespace {

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Does what a step does with memory: allocates a block, writes to each of its pages and frees it.
void take_and_free(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  auto* block = static_cast<volatile char*>(std::malloc(bytes));  // NOLINT: as torch's allocator does
  for (std::size_t at = 0; at < bytes; at += kPage) {
    block[at] = 1;
  }
  std::free(const_cast<char*>(block));  // NOLINT
}

TEST(FreedMemory, IsTakenAgainWithoutFaults) {
  if (!keeps_freed_memory()) {
    GTEST_SKIP() << "a sanitizer or the environment says how freed memory is handled";
  }
  keep_freed_memory();
  for (const std::size_t mebibytes : {1, 8, 96}) {  // by default glibc maps blocks above 32 MiB again each time
    take_and_free(mebibytes << 20);
    const long before = page_faults();
    for (int step = 0; step < 10; ++step) {
      take_and_free(mebibytes << 20);
    }
    EXPECT_LT(page_faults() - before, 64) << mebibytes << " MiB";  // without it: 256 per MiB and step
  }
}

}  // namespace
}  // namespace stoker::device
