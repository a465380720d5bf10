// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/parallel.h"

#include <ATen/Parallel.h>

namespace stoker::core {

void parallel_for(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  at::parallel_for(0, count, /*grain_size=*/1, work);
}

}  // namespace stoker::core
