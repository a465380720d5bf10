// SPDX-License-Identifier: Apache-2.0
// Texts compressed by gzip(1) and zstd(1): truncated and changed at any byte, concatenated, and too large.
#include "stoker/data/table/packed_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "stoker/base/error.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::string_literals;

const std::string kText = "a,b\n1,2\n", kMore = "3,4\n";
// printf 'a,b\n1,2\n' | gzip -n, and the same for "3,4\n"
const std::string kGzip =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xd4\x49\xe2\x32\xd4\x31\xe2\x02\x00\x7b\x07\x97\x0a\x08\x00\x00\x00"s;
const std::string kMoreGzip =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x33\xd6\x31\xe1\x02\x00\x3e\x2d\x72\xa9\x04\x00\x00\x00"s;
// The first from zstd(1), with a checksum; the second, of "3,4\n", from the library.
const std::string kZstd = "\x28\xb5\x2f\xfd\x24\x08\x41\x00\x00\x61\x2c\x62\x0a\x31\x2c\x32\x0a\x35\xe7\xca\xce"s;
const std::string kMoreZstd = "\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00\x33\x2c\x34\x0a"s;

std::string read(const std::string& bytes, std::size_t limit = 1'000'000) {
  const testing::TempFolder folder;
  folder.write("t.csv", bytes);  // the name does not show the format
  return read_packed_text(folder / "t.csv", limit);
}

std::string refusal(const std::string& bytes, std::size_t limit = 1'000'000) {
  try {
    return "taken: " + read(bytes, limit);
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(PackedText, PlainGzipAndZstandardAreTheSameText) {
  EXPECT_EQ(read(kText), kText);
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read(kGzip), kText);
  EXPECT_EQ(read(kZstd), kText);
  EXPECT_EQ(read(kGzip + kMoreGzip), kText + kMore) << "as pigz and bgzip write it";
  EXPECT_EQ(read(kZstd + kMoreZstd), kText + kMore);
  EXPECT_EQ(read("PAR1,PAR2\n1,2\n"), "PAR1,PAR2\n1,2\n") << "a text may begin like a Parquet file";
}

TEST(PackedText, LongTextsComeBackWhole) {
  std::string text;
  for (std::int64_t i = 0; i < 400'000; ++i) {
    text += std::to_string(i * 7919 % 100'003) + ",";
  }
  std::string packed(compressBound(text.size()) + 100, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  EXPECT_TRUE(read(packed, text.size()) == text);
  EXPECT_THAT(refusal(packed, text.size() - 1), AllOf(HasSubstr("t.csv"), HasSubstr("decompresses to more than")));

  packed.resize(ZSTD_compressBound(text.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  EXPECT_TRUE(read(packed, text.size()) == text);
  EXPECT_THAT(refusal(packed, text.size() - 1), AllOf(HasSubstr("t.csv"), HasSubstr("decompresses to more than")));
}

// A file of a kilobyte must not fill the memory, but a real table may be large.
TEST(PackedText, WhatASmallFileMayHold) {
  EXPECT_EQ(most_unpacked(1000), std::size_t{1} << 28);
  EXPECT_EQ(most_unpacked(std::size_t{1} << 24), std::size_t{1} << 32);
  EXPECT_GE(most_unpacked(static_cast<std::size_t>(-1)), std::size_t{1} << 60);
  const std::string zeros((std::size_t{1} << 28) + 1, '0');
  std::string packed(ZSTD_compressBound(zeros.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  ASSERT_LT(packed.size(), std::size_t{1} << 20);
  EXPECT_THAT(refusal(packed, std::size_t{1} << 32), HasSubstr("decompresses to more than 268435456 bytes"));
}

TEST(PackedText, CutAndChangedBytesAreFound) {
  for (const std::string& packed : {kGzip, kZstd}) {
    for (std::size_t length = 4; length < packed.size(); ++length) {
      EXPECT_THAT(refusal(packed.substr(0, length)), HasSubstr("t.csv")) << length;
    }
    EXPECT_THAT(refusal(packed + "more"), HasSubstr("damaged"));
    for (std::size_t i = 10; i < packed.size(); ++i) {  // after the headers
      std::string changed = packed;
      changed[i] = static_cast<char>(changed[i] ^ 0x40);
      EXPECT_THAT(refusal(changed), AnyOf(AllOf(HasSubstr("t.csv"), HasSubstr("get the file again")),
                                          "taken: " + kText))  // a padding bit of the last byte
          << i;
    }
  }
}

TEST(PackedText, OtherFormatsAreNamedWithWhatToDo) {
  EXPECT_THAT(refusal("PAR1\x15\x04\x00\x15 PAR1"s), AllOf(HasSubstr("Parquet"), HasSubstr("read_parquet")));
  EXPECT_THAT(refusal("ARROW1\x00\x00"s), AllOf(HasSubstr("Feather"), HasSubstr("read_feather")));
  EXPECT_THAT(refusal("PK\x03\x04\x14\x00"s), AllOf(HasSubstr("spreadsheet"), HasSubstr("CSV")));
  EXPECT_THAT(refusal("\xFD\x37zXZ\x00\x00"s), AllOf(HasSubstr("xz"), HasSubstr("gzip")));
  EXPECT_THAT(refusal("SQLite format 3\x00"s), HasSubstr("SQLite"));
}

}  // namespace
}  // namespace stoker::data
