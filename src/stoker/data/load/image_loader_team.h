// SPDX-License-Identifier: Apache-2.0
// Loading between steps, on the threads of LibTorch's operators: they have nothing to do while the step's thread waits
// for its batch. Threads of our own would be kept from the cores by these, which spin for a while after a step. Part of
// ImageLoader.
#pragma once

#include "stoker/data/load/row_pool.h"

namespace stoker::data {

// Deals rows out to at most so many of the threads that an operator of the caller would use; to the caller's alone
// where a batch is not worth more, as the one before showed, or the very first row. One thread calls what is returned.
[[nodiscard]] RowPool::ShareOut on_operator_threads(int most);

}  // namespace stoker::data
