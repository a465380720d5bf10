// SPDX-License-Identifier: Apache-2.0
// What a program does before it touches a device, its version text, and how errors of other libraries become
// stoker::Error. Called by the command line and by C++ programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace stoker::job {

// Keeps the memory that steps free (device/freed_memory.h), and loads CUDA if there is a driver: before the first ATen
// call, since torch remembers permanently that CUDA is missing. Also before other threads exist: it sets
// KINETO_LOG_LEVEL, unless that is set. Loading takes 0.3 s with a driver, so commands that need no device skip it.
void start_process();

// "stoker 0.2.0, torch 2.11.0, g++ 12.2.0". Touches no device.
[[nodiscard]] std::string version_text();

// Runs work. If memory runs out anywhere below, it throws stoker::OutOfMemory; if a device fails, stoker::DeviceError;
// for other errors of torch, a stoker::Error with their first line, without the call stack. All other errors pass
// through.
void with_typed_errors(const std::function<void()>& work);

// The same for work with a result.
template <typename Work>
[[nodiscard]] auto typed(const Work& work) {
  std::optional<decltype(work())> result;
  with_typed_errors([&] { result.emplace(work()); });
  return std::move(*result);
}

}  // namespace stoker::job
