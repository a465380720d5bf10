// SPDX-License-Identifier: Apache-2.0
// Messages and framing, compared with bytes from TensorBoard 2.20's own protobuf classes and RecordWriter.
#include "stoker/io/loggers/tensorboard_messages.h"

#include <gtest/gtest.h>

#include <limits>

#include "stoker/base/error.h"
#include "stoker/io/loggers/tfrecord.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

// The bytes as hexadecimal digits.
std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

TEST(TfRecord, ChecksumIsTheOneOfRfc3720) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(falling), 0x113FDB5CU);
}

TEST(TfRecord, FramesAsTensorBoardDoes) {
  std::string buffer = "before";
  append_record(buffer, file_version_event(1.5));
  EXPECT_EQ(hex(buffer.substr(6)), "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
}

TEST(TfRecord, AFileIsFreshAndWholeAfterAFlush) {
  const testing::TempFolder temp;
  RecordFile file(temp / "x");
  file.add("abc");
  file.flush();
  EXPECT_EQ(read_text(temp / "x").size(), 8U + 4 + 3 + 4);
  EXPECT_THROW(RecordFile(temp / "x"), IoError);
  EXPECT_THROW(RecordFile(temp / "missing/x"), IoError);
}

TEST(TensorBoardMessages, SessionStart) {
  EXPECT_EQ(hex(session_start_event(1.5, 300)), "09000000000000f83f10ac023a020801");
}

TEST(TensorBoardMessages, Scalars) {
  Summary summary;
  summary.scalar("val/größe", 0.25F);
  summary.scalar("x", std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(hex(summary_event(1.5, 300, summary)),
            "09000000000000f83f10ac022a1e0a120a0b76616c2f6772c3b6c39f65150000803e0a080a0178150000c07f");
}

TEST(TensorBoardMessages, Text) {
  Summary summary;
  summary.text("t", "*hi*");
  EXPECT_EQ(hex(summary.bytes()), "0a1f0a0174420e080712041202080142042a68692a4a0a0a060a04746578742002");
}

TEST(TensorBoardMessages, Images) {
  Summary summary;
  summary.images("i", {{"PNG", 3, 2}, {"GNP", 4, 4}});
  EXPECT_EQ(hex(summary.bytes()),
            "0a2b0a0169421808071204120208044201334201324203504e474203474e504a0c0a080a06696d616765732003");
}

TEST(TensorBoardMessages, Histograms) {
  Summary summary;
  summary.histogram("h", {"", -1, 1, {5, 7}});
  EXPECT_EQ(hex(summary.bytes()),
            "0a550a0168423e0802120812020802120208033230000000000000f0bf000000000000000000000000000014400000000000000000"
            "000000000000f03f0000000000001c404a100a0c0a0a686973746f6772616d732002");
}

TEST(TensorBoardMessages, HyperParameters) {
  Summary summary;
  summary.session_started({{"lr", "0.5", core::Origin::kDefault, ""}}, 1.5);
  EXPECT_EQ(hex(summary.bytes()),
            "0a550a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f420808012a04000000004a2b0a270a07687061"
            "72616d73121c1a1a0a0f0a026c72120911000000000000e03f29000000000000f83f2002");
}

}  // namespace
}  // namespace stoker::io
