// SPDX-License-Identifier: Apache-2.0
// Counts torch's operators, including autograd's nodes, while `work` runs. Other work on the machine does not change
// this figure. Used by step_bench. Only one count at a time.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace stoker::bench {

// Calls per operator ("aten::mul"), of all threads.
[[nodiscard]] std::map<std::string, int> count_operators(const std::function<void()>& work);

}  // namespace stoker::bench
