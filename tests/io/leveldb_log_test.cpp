// SPDX-License-Identifier: Apache-2.0
// The framing of records, read back by the rules of LevelDB's doc/log_format.md. tests/house/wandb_test.py reads whole
// files with W&B's own reader.
#include "stoker/io/loggers/leveldb_log.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace stoker::io {
namespace {

constexpr std::size_t kBlock = 32768, kHead = 7;

std::uint32_t number(const std::string& text, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
  }
  return value;
}

// The records of a text that begins at byte `begin` of a file; none if it breaks a rule.
std::optional<std::vector<std::string>> read(const std::string& text, std::size_t begin) {
  std::vector<std::string> records;
  bool open = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t room = kBlock - (begin + at) % kBlock;
    if (room < kHead) {
      if (text.compare(at, room, std::string(room, '\0')) != 0) {
        return std::nullopt;
      }
      at += room;
      continue;
    }
    const std::size_t length = number(text, at + 4, 2);
    const char type = text[at + 6];
    const std::string typed = text.substr(at + 6, 1 + length);
    const auto checksum = ::crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size()));
    const bool begins = type == 1 || type == 2, ends = type == 1 || type == 4;
    if (kHead + length > room || typed.size() != 1 + length || checksum != number(text, at, 4) || begins == open) {
      return std::nullopt;
    }
    if (begins) {
      records.emplace_back();
    }
    records.back() += typed.substr(1);
    open = !ends;
    at += kHead + length;
  }
  return open ? std::nullopt : std::optional(records);
}

std::string made_up(std::size_t size, char seed) {
  std::string text(size, seed);
  for (std::size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>(seed + static_cast<char>(i * i % 251));
  }
  return text;
}

TEST(LevelDbLog, AnyRecordFitsAnywhere) {
  for (std::size_t left = 0; left < 20; ++left) {  // bytes of the block behind the first record
    const std::vector<std::string> records = {made_up(kBlock - kHead - kHead - left, 'a'), "short", "",
                                              made_up(3 * kBlock, 'b'), made_up(kBlock - left, 'c')};
    std::string text;
    std::size_t at = kHead;
    for (const std::string& record : records) {
      append_pieces(text, at, record);
      EXPECT_EQ(at, kHead + text.size());
    }
    EXPECT_EQ(read(text, kHead), records) << left << " bytes left";
  }
}

}  // namespace
}  // namespace stoker::io
