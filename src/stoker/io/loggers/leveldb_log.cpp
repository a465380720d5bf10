// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/leveldb_log.h"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "stoker/base/error.h"

namespace stoker::io {
namespace {

constexpr std::size_t kBlock = 32768, kHead = 7;  // bytes
enum Piece : unsigned char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };
constexpr std::string_view kFileHead{":W&B\xe1\xbe\0", 7};  // name, magic 0xBEE1, version 0

void append_little_endian(std::string& buffer, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    buffer += static_cast<char>(value >> (8 * i));
  }
}

void append_piece(std::string& buffer, Piece piece, std::string_view bytes) {
  const unsigned char type = piece;
  uLong checksum = ::crc32(0, &type, 1);
  checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  append_little_endian(buffer, static_cast<std::uint32_t>(checksum), 4);
  append_little_endian(buffer, static_cast<std::uint32_t>(bytes.size()), 2);
  buffer += static_cast<char>(type);
  buffer += bytes;
}

int create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    fail<IoError>("io.wandb", "{}: cannot be created: {}", printable(path.native()), std::strerror(errno));
  }
  return descriptor;
}

}  // namespace

void append_pieces(std::string& buffer, std::size_t& at, std::string_view record) {
  bool first = true, last = false;
  while (!last) {
    std::size_t room = kBlock - at % kBlock;
    if (room < kHead) {  // no piece begins here
      buffer.append(room, '\0');
      at += room;
      room = kBlock;
    }
    const std::string_view bytes = record.substr(0, room - kHead);
    record.remove_prefix(bytes.size());
    last = record.empty();
    append_piece(buffer, first ? (last ? kFull : kFirst) : (last ? kLast : kMiddle), bytes);
    at += kHead + bytes.size();
    first = false;
  }
}

LevelDbLog::LevelDbLog(const std::filesystem::path& path) : file_(create(path), path), at_(kFileHead.size()) {
  file_.add(kFileHead);
}

void LevelDbLog::add(std::string_view record) {
  std::string pieces;
  std::size_t at = at_;
  append_pieces(pieces, at, record);
  file_.add(pieces);
  at_ = at;
}

}  // namespace stoker::io
