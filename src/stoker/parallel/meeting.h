// SPDX-License-Identifier: Apache-2.0
// Where ranks come together before they connect: in the store. Each rank must be one process, and all must have been
// started as equally many; whoever does not come is named. Used by ProcessGroup. No state.
#pragma once

#include <memory>
#include <string>

#include "stoker/parallel/place.h"
#include "stoker/parallel/process_group.h"
#include "stoker/parallel/store.h"

namespace stoker::parallel {

// The store of all ranks, as of Store's constructor. Says on each node if it does not answer for long.
[[nodiscard]] std::unique_ptr<Store> open_store(const Place& place, const GroupOptions& options);

// Returns when all ranks are there. The lowest of those that are there says who is missing, if that takes long.
// ConfigError on all of them, within a second, if two processes have one rank or if the numbers of ranks differ; on
// those that wait, if a rank does not come in time.
void wait_for_all(const Place& place, Store& store, const GroupOptions& options);

// Ends the start of all ranks that wait for this one: they throw the same ConfigError.
[[noreturn]] void refuse(Store& store, const std::string& why);

}  // namespace stoker::parallel
