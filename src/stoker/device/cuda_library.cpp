// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/cuda_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/cuda_entry.h"

namespace stoker::device {
namespace {

constexpr const char* kLibrary = "libstoker_cuda.so";

// Part of the environment once it is put there: a change of its last character is a change of the variable, without the
// danger of setenv() beside threads that read it.
std::array<char, 17> teardown = {"TEARDOWN_CUPTI=1"};

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason given" : printable(text);
}

// Empty if the driver works and has a device; else the reason. Uses only libcuda, so that a machine without a GPU does
// not load torch's CUDA libraries.
std::string probe_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays loaded: torch loads it next
  if (driver == nullptr) {
    return "libcuda.so.1 not found";
  }
  // cuda.h: CUresult cuInit(unsigned); CUresult cuDeviceGetCount(int*). CUresult is an int, 0 is success.
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) {
    return "libcuda.so.1 is not a CUDA driver library: it has no cuInit";
  }
  const int status = init(0);
  int devices = 0;
  if (status == 0 && count(&devices) == 0 && devices > 0) {
    return "";
  }
  constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
  if (status == 0 || status == kNoDevice) {
    return "the driver works but finds no GPU (check CUDA_VISIBLE_DEVICES)";
  }
  return fmt::format("the driver does not start (cuInit returned error {}); nvidia-smi may show the reason", status);
}

// Loads the library and lets it register. Empty on success, else the reason.
std::string load_library() {
  if (std::getenv("TEARDOWN_CUPTI") == nullptr) {
    ::putenv(teardown.data());
  }
  std::error_code ignored;
  std::string tried;
  for (const auto& path : cuda_library_candidates(std::filesystem::read_symlink("/proc/self/exe", ignored))) {
    if (path.has_parent_path() && !std::filesystem::exists(path, ignored)) {
      continue;
    }
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // never closed: its code is used until exit
    if (library == nullptr) {
      tried = loader_error();
      continue;
    }
    const auto enter = reinterpret_cast<CudaEntry*>(::dlsym(library, kCudaEntryName));
    if (enter == nullptr) {
      return fmt::format("{} has no {}; it belongs to another build", path.native(), kCudaEntryName);
    }
    enter(registry());
    return "";
  }
  return fmt::format("{} cannot be loaded: {}", kLibrary, tried);
}

}  // namespace

void leave_driver_after_recording(bool leaves) { teardown[teardown.size() - 2] = leaves ? '1' : '0'; }

std::vector<std::filesystem::path> cuda_library_candidates(const std::filesystem::path& executable) {
  const std::filesystem::path folder = executable.parent_path();
  return {folder / kLibrary, (folder / "../lib").lexically_normal() / kLibrary,
          (folder / "../../lib").lexically_normal() / kLibrary, kLibrary};
}

bool load_cuda() {
  static const bool loaded = [] {
    std::string reason = probe_driver();
    if (reason.empty()) {
      reason = load_library();
    }
    if (!reason.empty()) {
      registry().refuse(c10::DeviceType::CUDA, std::move(reason));
    }
    return find_backend(c10::DeviceType::CUDA) != nullptr;
  }();
  return loaded;
}

}  // namespace stoker::device
