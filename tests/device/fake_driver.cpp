// SPDX-License-Identifier: Apache-2.0
// A driver library that sees no GPU or does not start: built as libcuda.so.1 in its own folder, so that
// cuda_library_test can test machines that are not available. cuInit answers FAKE_CUINIT from the environment.
#include <cstdlib>

extern "C" int cuInit(unsigned) {
  const char* answer = std::getenv("FAKE_CUINIT");
  return answer == nullptr ? 0 : std::atoi(answer);
}

extern "C" int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}
