// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/thread_usage.h"

#include <sys/resource.h>

namespace stoker::observe {

ThreadUsage thread_usage() {
  rusage all{};
  ::getrusage(RUSAGE_THREAD, &all);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {.cpu_seconds = seconds(all.ru_utime) + seconds(all.ru_stime),
          .minor_faults = all.ru_minflt,
          .major_faults = all.ru_majflt,
          .voluntary = all.ru_nvcsw,
          .involuntary = all.ru_nivcsw};
}

ThreadUsage operator-(const ThreadUsage& later, const ThreadUsage& earlier) {
  return {.cpu_seconds = later.cpu_seconds - earlier.cpu_seconds,
          .minor_faults = later.minor_faults - earlier.minor_faults,
          .major_faults = later.major_faults - earlier.major_faults,
          .voluntary = later.voluntary - earlier.voluntary,
          .involuntary = later.involuntary - earlier.involuntary};
}

}  // namespace stoker::observe
