// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/text.h"

#include "stoker/base/fmt.h"

namespace stoker::core {

std::string_view dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    case at::kLong: return "int64";
    case at::kInt: return "int32";
    case at::kShort: return "int16";
    case at::kChar: return "int8";
    case at::kByte: return "uint8";
    case at::kBool: return "bool";
    default: return c10::toString(dtype);
  }
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "no tensor";
  }
  return fmt::format("{} [{}] on {}", dtype_name(tensor.scalar_type()), fmt::join(tensor.sizes().vec(), ", "),
                     tensor.device().str());
}

}  // namespace stoker::core
