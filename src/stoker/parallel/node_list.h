// SPDX-License-Identifier: Apache-2.0
// The two short forms in which Slurm tells of the nodes of a job (`man srun`, output environment variables). Without
// torch; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::parallel {

// Host names of a node list: "n[1-3,07],gpu5" is n1, n2, n3, n07, gpu5. ConfigError if it has no such form.
[[nodiscard]] std::vector<std::string> hosts_of(std::string_view node_list);

// Tasks of each node: "2(x3),1" is 2, 2, 2, 1. ConfigError if it has no such form.
[[nodiscard]] std::vector<int> counts_of(std::string_view tasks_per_node);

}  // namespace stoker::parallel
