// SPDX-License-Identifier: Apache-2.0
// Work of ours on the threads that LibTorch's operators use. at::parallel_for is a template that runs on one thread,
// and says nothing, where it is compiled without OpenMP: this is the one unit that is compiled with it, by GNU compilers,
// whose OpenMP is torch's. Others run it on one thread, of which CMake warns.
#pragma once

#include <cstdint>
#include <functional>

namespace stoker::core {

// Calls work(begin, end) for ranges that together are 0 ... count - 1, at once on up to at::get_num_threads() threads,
// the caller's among them, and returns when all are done. Rethrows the first exception that work throws. Inside of
// another such call, and for a count of 1, on the caller's thread alone.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work);

}  // namespace stoker::core
