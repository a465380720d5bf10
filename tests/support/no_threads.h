// SPDX-License-Identifier: Apache-2.0
// A system that starts no more threads, as under a tight `ulimit -u` or `ulimit -v`. While it exists, new threads get a
// stack that no address space can hold, so pthread_create() fails with EAGAIN. One at a time.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace stoker::testing {

class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t none;
    ::pthread_getattr_default_np(&before_);
    ::pthread_getattr_default_np(&none);
    ::pthread_attr_setstacksize(&none, std::size_t{1} << 48);
    ::pthread_setattr_default_np(&none);
    ::pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace stoker::testing
