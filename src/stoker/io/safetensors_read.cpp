// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/file_reader.h"
#include "stoker/io/safetensors.h"
#include "stoker/io/safetensors_dtype.h"
#include "stoker/io/safetensors_header.h"

namespace stoker::io {
namespace {

constexpr std::string_view kWhere = "io.safetensors";
static_assert(std::endian::native == std::endian::little, "the format and this code use little-endian numbers");

SafetensorsHeader read_header(const FileReader& file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    fail<CheckpointError>(kWhere, "{}: has {} bytes, too few for a safetensors file", file.name(), file.size());
  }
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes || length > file.size() - sizeof(length)) {
    fail<CheckpointError>(kWhere, "{}: is not a safetensors file, or is damaged: a header of {} bytes in a file of {}",
                          file.name(), length, file.size());
  }
  std::string text(length, ' ');
  file.read(sizeof(length), std::as_writable_bytes(std::span(text)));
  return parse_header(file.name(), text, file.size());
}

at::Tensor read_tensor(const FileReader& file, const SafetensorsHeader& header, const SafetensorsEntry& entry) {
  const SafetensorsDtype& dtype = kSafetensorsDtypes[static_cast<std::size_t>(dtype_rank(entry.dtype))];
  if (!dtype.scalar) {
    fail<CheckpointError>(kWhere, "{}: tensor \"{}\" has dtype {}, which this version does not support", file.name(),
                          printable(entry.name), entry.dtype);
  }
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(*dtype.scalar));
  const std::span bytes(static_cast<std::byte*>(tensor.data_ptr()), entry.end - entry.begin);
  file.read(header.data_start + entry.begin, bytes);
  if (*dtype.scalar == at::kBool && std::ranges::any_of(bytes, [](std::byte value) { return value > std::byte{1}; })) {
    fail<CheckpointError>(kWhere, "{}: tensor \"{}\" is BOOL, but contains bytes other than 0 and 1", file.name(),
                          printable(entry.name));
  }
  return tensor;
}

}  // namespace

SafetensorsHeader peek_safetensors(const std::filesystem::path& path) { return read_header(FileReader(path)); }

Safetensors read_safetensors(const std::filesystem::path& path) {
  const FileReader file(path);
  SafetensorsHeader header = read_header(file);
  Safetensors result;
  for (const SafetensorsEntry& entry : header.entries) {
    result.tensors.emplace(entry.name, read_tensor(file, header, entry));
  }
  result.metadata = std::move(header.metadata);
  return result;
}

}  // namespace stoker::io
