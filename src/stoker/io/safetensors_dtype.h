// SPDX-License-Identifier: Apache-2.0
// The dtypes of the safetensors format, in the order of the reference implementation (safetensors 0.8.0, tensor.rs,
// enum Dtype), which is the order in files. Used by the reader and the writer. Thread-safe: constants.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::io {

struct SafetensorsDtype {
  std::string_view name;
  std::uint64_t bits;
  std::optional<at::ScalarType> scalar;  // empty if LibTorch has no such type
};

inline constexpr std::array<SafetensorsDtype, 22> kSafetensorsDtypes{{
    {"BOOL", 8, at::kBool},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"U8", 8, at::kByte},
    {"I8", 8, at::kChar},
    {"F8_E5M2", 8, at::kFloat8_e5m2},
    {"F8_E4M3", 8, at::kFloat8_e4m3fn},
    {"F8_E8M0", 8, at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", 8, at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", 8, at::kFloat8_e5m2fnuz},
    {"I16", 16, at::kShort},
    {"U16", 16, at::kUInt16},
    {"F16", 16, at::kHalf},
    {"BF16", 16, at::kBFloat16},
    {"I32", 32, at::kInt},
    {"U32", 32, at::kUInt32},
    {"F32", 32, at::kFloat},
    {"C64", 64, at::kComplexFloat},
    {"F64", 64, at::kDouble},
    {"I64", 64, at::kLong},
    {"U64", 64, at::kUInt64},
}};

// Index into kSafetensorsDtypes, or -1.
[[nodiscard]] constexpr int dtype_rank(std::string_view name) {
  for (std::size_t i = 0; i < kSafetensorsDtypes.size(); ++i) {
    if (kSafetensorsDtypes[i].name == name) {
      return static_cast<int>(i);
    }
  }
  return -1;
}
[[nodiscard]] constexpr int dtype_rank(at::ScalarType scalar) {
  for (std::size_t i = 0; i < kSafetensorsDtypes.size(); ++i) {
    if (kSafetensorsDtypes[i].scalar == scalar) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace stoker::io
