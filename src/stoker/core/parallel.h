// SPDX-License-Identifier: Apache-2.0
// Our own work on the threads of LibTorch's operators, and operators on one thread where more do not pay off.
// at::parallel_for is a template that silently runs on one thread if it is compiled without OpenMP. This is the only
// unit that is compiled with OpenMP, by GNU compilers, whose OpenMP is torch's. Other compilers run it on one thread,
// and CMake warns.
#pragma once

#include <cstdint>
#include <functional>

namespace stoker::core {

// An elementwise pass over a tensor stays on one thread unless it reads and writes more bytes than this. Waking a
// second thread took 1.6 to 2.5 us on two idle cores of a Xeon with AVX-512 (medians of 60 interleaved turns): two
// threads began to be faster than one at 4,096 numbers of AdamW (28 bytes each), at 16,384 of SGD with momentum (20
// bytes each) and at 65,536 of a norm (4 bytes each), that is between 112 and 320 KiB. Beside a busy neighbour they
// begin later.
inline constexpr std::int64_t kOneThreadBytes = std::int64_t{256} << 10;

// Calls work(begin, end) for ranges that together are 0 ... count - 1, in parallel on up to at::get_num_threads()
// threads including the caller's, and returns when all are done. Rethrows the first exception of work. Inside another
// such call, and for a count of 1, only on the caller's thread.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work);

// While an object lives, operators started by the calling thread run only on that thread. Takes nanoseconds;
// at::set_num_threads() would discard oneDNN's kernels.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace stoker::core
