// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/tfrecord.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "stoker/base/error.h"

namespace stoker::io {
namespace {

// The remainder for each byte; Castagnoli polynomial, bits reversed.
constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82F63B78U : 0U);
    }
    table[byte] = rest;
  }
  return table;
}();

// The mask of the format: a checksum over bytes that contain checksums would be weak.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

void append_little_endian(std::string& buffer, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    buffer += static_cast<char>(value >> (8 * i));
  }
}

int create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    fail<IoError>("io.tfrecord", "{}: cannot be created: {}", printable(path.native()), std::strerror(errno));
  }
  return descriptor;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8);
  }
  return ~crc;
}

void append_record(std::string& buffer, std::string_view record) {
  std::string length;
  append_little_endian(length, record.size(), 8);
  buffer += length;
  append_little_endian(buffer, masked_crc(length), 4);
  buffer += record;
  append_little_endian(buffer, masked_crc(record), 4);
}

RecordFile::RecordFile(const std::filesystem::path& path) : file_(create(path), path) {}

void RecordFile::add(std::string_view record) {
  std::string framed;
  append_record(framed, record);
  file_.add(framed);
}

}  // namespace stoker::io
