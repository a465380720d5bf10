// SPDX-License-Identifier: Apache-2.0
// Tensors as text, for error messages and tables.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace stoker::core {

// "float32", "bfloat16", "int64", ...: the names used in Python.
[[nodiscard]] std::string_view dtype_name(at::ScalarType dtype);
// "float32 [64, 3, 7, 7] on cpu".
[[nodiscard]] std::string describe(const at::Tensor& tensor);

}  // namespace stoker::core
