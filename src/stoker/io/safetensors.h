// SPDX-License-Identifier: Apache-2.0
// The safetensors format: named tensors in one file, readable by Python, without code in it. Refuses whatever the
// reference implementation 0.8.0 refuses, before it allocates anything. Used by the checkpoint store, `stoker export`,
// `weights=FILE` and `stoker info`. Thread-safe: no state.
//
// Layout (github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian header length, a JSON header that
// maps names to dtype, shape and data_offsets, then the tensors' bytes, row-major, without holes or overlaps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stoker::io {

struct Safetensors {
  std::map<std::string, at::Tensor> tensors;  // on the CPU, contiguous
  std::map<std::string, std::string> metadata;
};

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as in the file: "F32", "BF16", "I64", ...
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes after the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  // where in the file the tensors' bytes begin
  std::uint64_t file_bytes = 0;
};

// The validated header alone: what `stoker info` shows. CheckpointError names file and reason.
[[nodiscard]] SafetensorsHeader peek_safetensors(const std::filesystem::path& path);

// Every tensor of the file; holds the tensors and nothing of the file beside them. CheckpointError names file and
// reason; a dtype that is valid but that LibTorch has no scalar type for (F4, F6) is refused, too.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

// Atomic (the file exists wholly or not at all). Equal tensors and metadata give equal bytes, the same as the reference
// implementation's: widest dtype first, then by name, header padded with spaces to 8 bytes. Takes any device, layout of
// strides and conjugation; one tensor at a time is copied where it is not contiguous on the CPU.
// CheckpointError for a tensor that the format cannot hold (sparse, quantized, complex128); IoError when the disk
// refuses. seen is called with each tensor's bytes just before they are written (checksums).
using TensorBytesSeen = std::function<void(const std::string& name, std::span<const std::byte> bytes)>;
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {}, const TensorBytesSeen& seen = {});

}  // namespace stoker::io
