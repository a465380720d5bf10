// SPDX-License-Identifier: Apache-2.0
// A driver library that sees no GPU or does not start: built as libcuda.so.1 in a folder of its own, so that
// cuda_library_test can meet machines that are not at hand. cuInit answers FAKE_CUINIT from the environment.
#include <cstdlib>

extern "C" int cuInit(unsigned) {
  const char* answer = std::getenv("FAKE_CUINIT");
  return answer == nullptr ? 0 : std::atoi(answer);
}

extern "C" int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}
