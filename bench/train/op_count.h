// SPDX-License-Identifier: Apache-2.0
// Counts torch's operators while work runs, autograd's nodes included: a figure that no other work on the machine
// changes. Used by step_bench. One at a time.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace stoker::bench {

// Calls by operator, "aten::mul", of all threads.
[[nodiscard]] std::map<std::string, int> count_operators(const std::function<void()>& work);

}  // namespace stoker::bench
