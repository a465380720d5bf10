// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/freed_memory.h"

#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace stoker::device {

bool keeps_freed_memory() {
  if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr) {
    return false;
  }
  constexpr std::array kNames = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"};
  return std::ranges::none_of(kNames, [](const char* name) {
    return std::getenv(name) != nullptr;  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  });
}

void keep_freed_memory() {
  if (keeps_freed_memory()) {
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, -1);
  }
}

}  // namespace stoker::device
