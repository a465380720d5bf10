// SPDX-License-Identifier: Apache-2.0
// Loads between steps on LibTorch's intra-op threads, which are idle while the step waits for its batch. Separate
// threads would not get the cores, since intra-op threads spin for a while after a step. Part of ImageLoader.
#pragma once

#include "stoker/data/load/row_pool.h"

namespace stoker::data {

// Distributes rows over at most `most` of the caller's intra-op threads. Uses only the caller's thread if a batch is
// too small, measured by the previous batch or the very first row. One thread calls the returned function.
[[nodiscard]] RowPool::ShareOut on_operator_threads(int most);

}  // namespace stoker::data
