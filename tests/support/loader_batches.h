// SPDX-License-Identifier: Apache-2.0
// The batches of a loader as a list. For tests of ImageLoader, in one thread.
#pragma once

#include "stoker/data/load/image_loader.h"
#include "support/same_batch.h"

namespace stoker::testing {

inline Batches run(const data::ImageLoaderOptions& options, int calls) {
  data::ImageLoader loader(options);
  Batches out;
  for (int i = 0; i < calls; ++i) {
    out.push_back(loader.next());
  }
  return out;
}

}  // namespace stoker::testing
