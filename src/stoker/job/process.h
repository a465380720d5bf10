// SPDX-License-Identifier: Apache-2.0
// What a program does before it touches a device, what it says of itself, and how foreign errors become ours. Called by
// the command line and by C++ programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace stoker::job {

// Keeps the memory that steps free (memory/freed_memory.h), and brings CUDA in if there is a driver: before the first
// ATen call, since torch remembers the absence of CUDA for good. It takes 0.3 s where there is a driver, so what needs
// no device leaves it out.
void start_process();

// "stoker 0.2.0, torch 2.11.0, g++ 12.2.0". Touches no device.
[[nodiscard]] std::string version_text();

// Runs work. Memory that ran out anywhere below comes out as stoker::OutOfMemory, a device that failed as
// stoker::DeviceError, other errors of torch as a stoker::Error of their first line, without the call stack; all others
// as they are.
void with_typed_errors(const std::function<void()>& work);

// The same for work that has a result.
template <typename Work>
[[nodiscard]] auto typed(const Work& work) {
  std::optional<decltype(work())> result;
  with_typed_errors([&] { result.emplace(work()); });
  return std::move(*result);
}

}  // namespace stoker::job
