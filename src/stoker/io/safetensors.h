// SPDX-License-Identifier: Apache-2.0
// The safetensors format: named tensors in one file, readable by Python, without code in it. Rejects everything that
// the reference implementation 0.8.0 rejects, before it allocates anything. Used by the checkpoint store, `stoker
// export`, `weights=FILE` and `stoker info`. Thread-safe: no state.
//
// Layout (github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian header length, a JSON header that
// maps names to dtype, shape and data_offsets, then the bytes of the tensors, row-major, without gaps or overlaps.
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
  std::vector<SafetensorsEntry> entries;  // in file order
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  // file offset of the first tensor byte
  std::uint64_t file_bytes = 0;
};

// Only the validated header, as shown by `stoker info`. CheckpointError with file and reason.
[[nodiscard]] SafetensorsHeader peek_safetensors(const std::filesystem::path& path);

// Reads every tensor of the file; needs memory only for the tensors. CheckpointError with file and reason, also for a
// valid dtype without a LibTorch scalar type (F4, F6).
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

// Writes the file atomically (it is complete or absent). Equal tensors and metadata give equal bytes, the same as in
// the reference implementation: widest dtype first, then by name, header padded with spaces to 8 bytes. Accepts any
// device, strides and conjugation; copies one tensor at a time if it is not contiguous on the CPU.
// CheckpointError for a tensor that the format cannot store (sparse, quantized, complex128); IoError if the disk
// refuses. seen is called with the bytes of each tensor just before they are written (for checksums).
using TensorBytesSeen = std::function<void(const std::string& name, std::span<const std::byte> bytes)>;
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {}, const TensorBytesSeen& seen = {});

}  // namespace stoker::io
