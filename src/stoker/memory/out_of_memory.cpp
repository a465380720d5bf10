// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/core/first_line.h"

namespace stoker::memory {
namespace {

constexpr std::array<std::string_view, 7> kTexts = {
    "can't allocate memory",             // c10's CPU allocator, a plain c10::Error
    "CUDA error: out of memory",         // the CUDA runtime, a c10::AcceleratorError
    "CUDA out of memory",                // c10's CUDA allocator, if the type was lost on the way
    "CUBLAS_STATUS_ALLOC_FAILED",        // a handle or a workspace
    "CUDNN_STATUS_ALLOC_FAILED",         // the same
    "could not create a memory object",  // oneDNN
    "could not allocate memory"};        // oneDNN's scratch pad

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr || dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return true;
  }
  if (dynamic_cast<const Error*>(&error) != nullptr) {  // our errors may quote a file name
    return false;
  }
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  if (text == "could not create a primitive") {  // oneDNN had its description already: code and scratch are missing
    return true;
  }
  // oneDNN only gives the name of its status.
  return text == "out of memory" || text.ends_with(": out of memory") ||
         std::ranges::any_of(kTexts, [&](std::string_view each) { return text.find(each) != std::string_view::npos; });
}

std::string out_of_memory_reason(const std::exception& error) {
  const std::string line = core::first_line(error);
  constexpr std::string_view kPlace = "[memory] ";
  return line.starts_with(kPlace) ? line.substr(kPlace.size()) : line;
}

}  // namespace stoker::memory
