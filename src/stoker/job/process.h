// SPDX-License-Identifier: Apache-2.0
// What a program does before anything else, and what it says of itself. Called by main and by C++ programs.
#pragma once

#include <exception>
#include <string>

namespace stoker::job {

// The first act of main, before any ATen call: brings CUDA in if there is a driver.
void start_process();

// "stoker 0.1.0, torch 2.11.0, g++ 12.2.0".
[[nodiscard]] std::string version_text();

// An exception that is none of ours, such as torch's, for people: its first line, without the call stack.
struct Failure {
  std::string text;
  bool out_of_memory = false;
};
[[nodiscard]] Failure describe_failure(const std::exception& error);

}  // namespace stoker::job
