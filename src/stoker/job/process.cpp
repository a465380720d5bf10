// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/process.h"

#include <c10/util/Exception.h>

#include <new>

#include "stoker/base/fmt.h"
#include "stoker/base/version.h"
#include "stoker/device/cuda_library.h"
#include "stoker/device/process_facts.h"

namespace stoker::job {

void start_process() { device::load_cuda(); }

std::string version_text() {
  const device::Versions versions = device::versions();
  return fmt::format("stoker {}, torch {}, g++ {}", kVersion, versions.torch, versions.compiler);
}

Failure describe_failure(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  // The CPU's allocator throws the plain c10::Error.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                      text.find("can't allocate memory") != std::string::npos;
  text = text.substr(0, text.find('\n'));
  return {memory ? fmt::format("out of memory; set microbatch= or image_size= lower ({})", text) : text, memory};
}

}  // namespace stoker::job
