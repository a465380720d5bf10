// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/freed_memory.h"

#include <malloc.h>

#include <cstdlib>
#include <initializer_list>

namespace stoker::memory {

void keep_freed_memory() {
  for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name) != nullptr) {  // NOLINT(concurrency-mt-unsafe): before any thread starts
      return;
    }
  }
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace stoker::memory
