// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/process.h"

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

}  // namespace stoker::job
