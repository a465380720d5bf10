// SPDX-License-Identifier: Apache-2.0
// Paths of the stand-ins for NVIDIA's management library, beside the running test program. One thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace stoker::testing {

// kind: "whole", "half".
inline std::string fake_nvml(const std::string& kind) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path() / "fake_nvml" / kind / "libnvidia-ml.so.1").native();
}

// Sets FAKE_NVML while it exists.
class FakeNvmlMode {
 public:
  explicit FakeNvmlMode(const char* mode) { ::setenv("FAKE_NVML", mode, 1); }
  ~FakeNvmlMode() { ::unsetenv("FAKE_NVML"); }
  FakeNvmlMode(const FakeNvmlMode&) = delete;
  FakeNvmlMode& operator=(const FakeNvmlMode&) = delete;
};

}  // namespace stoker::testing
