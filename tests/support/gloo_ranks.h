// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, each with a process group of its own, over Gloo on the loopback interface. They run
// at the same time and share the process's random generator: for work that draws nothing.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "stoker/parallel/process_group.h"
#include "support/temp_folder.h"

namespace stoker::testing {

// What each rank ended with; empty: no error.
inline std::vector<std::string> run_over_gloo(int ranks, const std::function<void(core::Communicator&)>& work,
                                              const parallel::GroupOptions& options = {}) {
  const TempFolder folder;
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      parallel::Place place;
      place.rank = place.local_rank = rank;
      place.ranks = place.local_ranks = ranks;
      place.meeting.file = (folder / "meeting").native();
      std::shared_ptr<core::Communicator> group;
      try {
        group = parallel::join(place, options);
        work(*group);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
        if (group) {
          group->leave(error);
        }
      }
    });
  }
  threads.clear();
  return errors;
}

}  // namespace stoker::testing
