// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/parallel.h"

#include <ATen/Parallel.h>

// From OpenMP: the maximum number of threads of parallel regions started by the calling thread. Declared here because
// its header belongs to a compiler.
extern "C" void omp_set_num_threads(int threads);

namespace stoker::core {

void parallel_for(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  at::parallel_for(0, count, /*grain_size=*/1, work);
}

OneThread::OneThread() : before_(at::get_num_threads()) {
  omp_set_num_threads(1);
}  // called first: it sets the default

OneThread::~OneThread() { omp_set_num_threads(before_); }

}  // namespace stoker::core
