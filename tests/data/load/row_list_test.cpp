// SPDX-License-Identifier: Apache-2.0
// Packed rows come back, whatever their values; bytes that are none are refused; a damaged list gives right rows or
// none.
#include "stoker/data/load/row_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "stoker/base/file.h"
#include "support/jpeg_row_sets.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::made_up_key;
using testing::made_up_rows;
using testing::TempFolder;

constexpr std::size_t kAll = std::size_t{1} << 32;

std::vector<std::byte> packed(const JpegRows& rows) {
  std::vector<std::byte> bytes;
  pack_rows(rows, bytes);
  return bytes;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST(PackedRows, AreDifferencesInSevenBits) {
  EXPECT_EQ(packed({}), bytes_of({}));
  EXPECT_EQ(packed({{0, {0, 0, 0}}, {300, {-1, 64, 3}}, {301, {-2, -64, 3}}}),
            bytes_of({0, 0, 0, 0, 0xAC, 2, 1, 0x80, 1, 6, 1, 1, 0xFF, 1, 0}));
}

TEST(PackedRows, AnyValuesComeBack) {
  using Bit = std::numeric_limits<std::uint32_t>;
  using Dc = std::numeric_limits<std::int16_t>;
  std::mt19937_64 random(7);
  const auto any = [&](std::initializer_list<std::int64_t> edges) {
    const auto pick = random() % 3;
    return pick == 0 ? static_cast<std::int64_t>(random()) : edges.begin()[random() % edges.size()];
  };
  for (int i = 0; i < 2'000; ++i) {
    JpegRows rows(random() % 50), back;
    for (JpegRow& row : rows) {
      row.bit = static_cast<std::uint32_t>(any({0, 1, 127, 128, 16'383, 16'384, Bit::max()}));
      for (std::int16_t& dc : row.dc) {
        dc = static_cast<std::int16_t>(any({0, -1, 1, 63, 64, -64, -65, Dc::min(), Dc::max()}));
      }
    }
    ASSERT_TRUE(unpack_rows(packed(rows), back));
    ASSERT_EQ(back, rows);
  }
}

// There is one way to write rows: any other bytes are refused, so nothing is unpacked from bytes that were not packed.
TEST(PackedRows, OtherBytesAreRefused) {
  JpegRows rows(3);
  for (const auto& bytes : {bytes_of({0}), bytes_of({0, 0, 0}), bytes_of({0x80}), bytes_of({0x80, 0, 0, 0, 0}),
                            bytes_of({0, 0, 0x81, 0, 0}), bytes_of({0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0}),
                            bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, 0, 0}), bytes_of({0, 0x80, 0x80, 4, 0, 0})}) {
    EXPECT_FALSE(unpack_rows(bytes, rows));
    EXPECT_TRUE(rows.empty());
  }
  std::mt19937_64 random(11);
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::byte> bytes(random() % 24);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 128); });
    if (unpack_rows(bytes, rows)) {
      ++taken;
      ASSERT_EQ(packed(rows), bytes);
    }
  }
  EXPECT_GT(taken, 1'000);
}

class RowListTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kImages = 5;

  void SetUp() override {
    std::vector<PackedRows> entries;
    for (std::uint64_t i = 0; i < kImages; ++i) {
      packed_.push_back(packed(made_up_rows(i, 3 + i)));
      entries.push_back({made_up_key(i), packed_.back()});
    }
    std::ranges::sort(entries, [](const auto& a, const auto& b) { return comes_before(a.key, b.key); });
    write_row_list(entries, [&](Bytes piece) { text_ += as_text(piece); });
  }
  [[nodiscard]] std::shared_ptr<const RowList> opened(std::string_view text) const {
    folder_.write("list", text);
    return RowList::open(folder_ / "list", kAll);
  }
  // How many images have their rows; the others must have none.
  [[nodiscard]] static std::uint64_t right(const RowList& list) {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < kImages; ++i) {
      const Bytes found = list.find(made_up_key(i));
      JpegRows rows;
      EXPECT_TRUE(found.empty() || (unpack_rows(found, rows) && rows == made_up_rows(i, 3 + i))) << i;
      count += found.empty() ? 0 : 1;
    }
    return count;
  }

  TempFolder folder_;
  std::vector<std::vector<std::byte>> packed_;
  std::string text_;
};

TEST_F(RowListTest, IsFoundByContent) {
  const auto list = opened(text_);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), kImages);
  EXPECT_EQ(list->bytes(), text_.size());
  EXPECT_FALSE(list->entry(0).in_use);
  EXPECT_EQ(right(*list), kImages);
  EXPECT_TRUE(list->entry(0).in_use);
  EXPECT_TRUE(list->find(made_up_key(kImages)).empty());
  EXPECT_TRUE(list->find(made_up_key(0, 99'999)).empty()) << "the same hash, but another size";
  for (std::size_t i = 0; i < kImages; ++i) {
    EXPECT_EQ(as_text(list->entry(i).packed), as_text(list->find(list->entry(i).key)));
  }
  EXPECT_EQ(opened(text_ + " "), nullptr) << "another length than it says";
}

TEST_F(RowListTest, DamageNeverGivesOtherRows) {
  constexpr std::size_t kCount = 48;  // where the number of entries is: more than there are do no harm
  for (std::size_t at = 0; at < text_.size(); ++at) {
    std::string damaged = text_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const auto list = opened(damaged);
    EXPECT_TRUE(!list || right(*list) < kImages || (at >= kCount && at < kCount + 8)) << at;
    ASSERT_EQ(opened(text_.substr(0, at)), nullptr) << at;
  }
}

// As a list of a program that is wrong or hostile: any numbers anywhere.
TEST_F(RowListTest, NoBytesLeadOutsideTheList) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = text_;
    for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
      const std::uint64_t value = random() % 2 == 0 ? random() : ~std::uint64_t{0} - random() % 64;
      const std::size_t at = 48 + random() % (damaged.size() - 56);
      damaged.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    }
    const std::uint64_t length = damaged.size();  // the one that is checked
    damaged.replace(56, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
    if (const auto list = opened(damaged)) {
      (void)right(*list);
      for (std::size_t number = 0; number < list->size(); ++number) {
        (void)list->entry(number);
      }
    }
  }
}

TEST_F(RowListTest, AnotherVersionIsIgnored) {
  std::string other = text_;
  other.replace(text_.find(" 1 "), 3, " 2 ");
  EXPECT_EQ(opened(other), nullptr);
  EXPECT_EQ(RowList::open(folder_ / "none", kAll), nullptr);
}

}  // namespace
}  // namespace stoker::data
