// SPDX-License-Identifier: Apache-2.0
// What a program does before anything else, and what it says of itself. Called by main and by C++ programs.
#pragma once

#include <string>

namespace stoker::job {

// The first act of main, before any ATen call: brings CUDA in if there is a driver.
void start_process();

// "stoker 0.1.0, torch 2.11.0, g++ 12.2.0".
[[nodiscard]] std::string version_text();

}  // namespace stoker::job
