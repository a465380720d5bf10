// SPDX-License-Identifier: Apache-2.0
// Every way in which torch and the libraries below it say that memory ran out, and errors that only look like it.
#include "stoker/memory/out_of_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "stoker/base/error.h"

namespace stoker::memory {
namespace {

TEST(OutOfMemory, IsKnownByItsType) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(std::bad_array_new_length()));
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "no room")));
  EXPECT_TRUE(is_out_of_memory(OutOfMemory("memory", "no room")));
}

TEST(OutOfMemory, IsKnownByTheTextOfALibrary) {
  for (const char* text :
       {"CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "could not create a memory object", "could not create a primitive",
        "could not execute a primitive: out of memory", "out of memory"}) {
    EXPECT_TRUE(is_out_of_memory(std::runtime_error(text))) << text;
    EXPECT_TRUE(is_out_of_memory(c10::Error({__func__, __FILE__, __LINE__}, text))) << text;
  }
}

TEST(OutOfMemory, TheCpuAllocatorsErrorIsOne) {
  try {
    (void)at::empty({std::int64_t{1} << 50}, at::kByte);
    FAIL() << "a petabyte was allocated";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
}

TEST(OutOfMemory, OtherErrorsAreNot) {
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")));
  EXPECT_FALSE(
      is_out_of_memory(c10::Error({__func__, __FILE__, __LINE__}, "mat1 and mat2 shapes cannot be multiplied")));
  EXPECT_FALSE(is_out_of_memory(DataError("data", "can't allocate memory.png: out of memory")));
}

}  // namespace
}  // namespace stoker::memory
