// SPDX-License-Identifier: Apache-2.0
// Who is missing when a collective fails or takes too long: each rank that lives tells where it stands, and a sentence
// names the others, or the one that all wait for. Used by Lifeline. Without torch; no state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/parallel/flight_record.h"
#include "stoker/parallel/member.h"

namespace stoker::parallel {

[[nodiscard]] std::string to_text(const Standing& standing);
[[nodiscard]] Standing standing_from(const std::string& text);

// members, answers: of all ranks; no answer: the rank gave none. look: what became of a process (fate), empty: nothing
// is known. "rank 1 (node7, process 4711) has ended by signal 9 (Killed)".
[[nodiscard]] std::string who_is_missing(const std::vector<Member>& members,
                                         const std::vector<std::optional<Standing>>& answers,
                                         const std::function<std::string(const Member&)>& look);

}  // namespace stoker::parallel
