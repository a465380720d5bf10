// SPDX-License-Identifier: Apache-2.0
// Which ranks form a part of the process group. Used by ProcessGroup; values.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "stoker/parallel/place.h"

namespace stoker::parallel {

struct GroupMembers {
  std::vector<int> ranks;  // of all ranks, ascending
  int own = 0;             // index of this rank
};

// groups: of each rank the number that it gave, int64 [1].
[[nodiscard]] inline GroupMembers members_of(const std::vector<at::Tensor>& groups, int rank) {
  const auto group_of = [&](std::size_t each) { return *groups[each].const_data_ptr<std::int64_t>(); };
  GroupMembers members;
  for (std::size_t each = 0; each < groups.size(); ++each) {
    if (group_of(each) == group_of(static_cast<std::size_t>(rank))) {
      if (static_cast<int>(each) == rank) {
        members.own = static_cast<int>(members.ranks.size());
      }
      members.ranks.push_back(static_cast<int>(each));
    }
  }
  return members;
}

// The place of a rank in a part. On several nodes it is not known who shares this one.
[[nodiscard]] inline Place place_in(Place whole, const GroupMembers& members) {
  const auto size = static_cast<int>(members.ranks.size());
  whole.local_ranks = whole.one_node() ? size : std::min(size, whole.local_ranks);
  whole.local_rank = std::min(members.own, whole.local_ranks - 1);
  whole.rank = members.own;
  whole.ranks = size;
  return whole;
}

}  // namespace stoker::parallel
