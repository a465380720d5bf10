// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/process.h"

#include <c10/util/Exception.h>

#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/base/version.h"
#include "stoker/core/first_line.h"
#include "stoker/device/cuda_library.h"
#include "stoker/device/device_fault.h"
#include "stoker/device/freed_memory.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/process_facts.h"
#include "stoker/memory/out_of_memory.h"

namespace stoker::job {

void start_process() {
  ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);  // else torch's profiler warns on each machine without a GPU
  device::keep_freed_memory();
  device::install_host_allocator();
  device::load_cuda();
}

std::string version_text() {
  const device::Versions versions = device::versions();
  return fmt::format("stoker {}, torch {}, g++ {}", kVersion, versions.torch, versions.compiler);
}

void with_typed_errors(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (memory::is_out_of_memory(error)) {
      fail<OutOfMemory>("memory", "out of memory; set microbatch= lower, or image_size= or context= ({})",
                        core::first_line(error));
    }
    if (device::is_device_fault(error)) {
      fail<DeviceError>("device", "the device failed ({}); check `nvidia-smi` and `dmesg`, or set device=cpu",
                        core::first_line(error));
    }
    if (dynamic_cast<const c10::Error*>(&error) != nullptr) {
      fail<Error>("torch", "{}", core::first_line(error));
    }
    throw;
  }
}

}  // namespace stoker::job
