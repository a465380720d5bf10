// SPDX-License-Identifier: Apache-2.0
// Headers that no encoder of ours writes: which of them the decoder of baseline JPEGs takes, with the pixels of
// libjpeg-turbo, and which it leaves. And the EXIF segment that counts.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <functional>

#include "support/jpeg_kinds.h"
#include "support/jpeg_paths.h"

namespace stoker::data {
namespace {

using testing::JpegContent;
using testing::JpegKind;
using File = std::vector<std::byte>;

constexpr int kSof0 = 0xC0, kSof1 = 0xC1, kSos = 0xDA, kDqt = 0xDB, kApp0 = 0xE0;

int byte(const File& file, std::size_t at) { return std::to_integer<int>(file[at]); }

// Where a marker of the header is.
std::size_t place(const File& file, int marker) {
  std::size_t at = 2;
  while (byte(file, at + 1) != marker) {
    at += 2 + static_cast<std::size_t>(byte(file, at + 2) << 8 | byte(file, at + 3));
  }
  return at;
}

File with(File file, std::size_t at, std::initializer_list<int> bytes) {
  File more;
  for (const int value : bytes) {
    more.push_back(static_cast<std::byte>(value));
  }
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return file;
}

File with_byte(File file, std::size_t at, int value) {
  file.at(at) = static_cast<std::byte>(value);
  return file;
}

// With names of components that are all the same.
File with_one_name(File file) {
  const std::size_t frame = place(file, kSof0), scan = place(file, kSos);
  for (int i = 0; i < byte(file, frame + 9); ++i) {
    file[frame + 10 + 3 * static_cast<std::size_t>(i)] = file[scan + 5 + 2 * static_cast<std::size_t>(i)] =
        std::byte{5};
  }
  return file;
}

// With values of 16 bits in the first table of quantisers. high: upper byte of the last one.
File with_wide_quantisers(const File& file, int high) {
  const std::size_t at = place(file, kDqt);
  File wide(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
  wide = with(wide, wide.size(), {0xFF, kDqt, 0, 2 + 1 + 128, 0x10 | byte(file, at + 4)});
  for (std::size_t k = 0; k < 64; ++k) {
    wide = with(wide, wide.size(), {k == 63 ? high : 0, byte(file, at + 5 + k)});
  }
  wide.insert(wide.end(), file.begin() + static_cast<std::ptrdiff_t>(at) + 5 + 64, file.end());
  if (byte(file, at + 3) > 2 + 65) {  // the other tables: a segment of their own
    wide = with(wide, at + 5 + 128, {0xFF, kDqt, 0, byte(file, at + 3) - 65});
  }
  return wide;
}

struct Header {
  const char* what;
  bool ours;
  std::function<File(const File&)> change;
};

const std::vector<Header>& headers() {
  const auto before = [](int marker, std::initializer_list<int> bytes) {
    return [marker, bytes = std::vector<int>(bytes)](const File& file) {
      File more = file;
      std::size_t at = place(file, marker);
      for (const int value : bytes) {
        more = with(more, at++, {value});
      }
      return more;
    };
  };
  static const std::vector<Header> all = {
      {"as written", true, [](const File& file) { return file; }},
      {"extended sequential", true, [](const File& file) { return with_byte(file, place(file, kSof0) + 1, kSof1); }},
      {"fill bytes", true, before(kSos, {0xFF, 0xFF, 0xFF})},
      {"no restarts", true, before(kSos, {0xFF, 0xDD, 0, 4, 0, 2, 0xFF, 0xDD, 0, 4, 0, 0})},
      {"restarts", false, before(kSos, {0xFF, 0xDD, 0, 4, 0, 2})},
      {"empty APP1 segments", true, before(kSos, {0xFF, 0xE1, 0, 0, 0xFF, 0xE1, 0, 1, 0xFF, 0xE1, 0, 2})},
      {"a byte between segments", false, before(kSos, {0x12})},
      {"one name of all components", true, [](const File& file) { return with_one_name(file); }},
      {"16-bit quantisers", true, [](const File& file) { return with_wide_quantisers(file, 0); }},
      {"a large quantiser", false, [](const File& file) { return with_wide_quantisers(file, 1); }},
      {"another version of JFIF", false, [](const File& file) { return with_byte(file, place(file, kApp0) + 9, 2); }}};
  return all;
}

TEST(JpegPathHeader, TakesWhatTheLibraryReadsWithoutAWarning) {
  const bool has_path = (hwy::SupportedTargets() & HWY_AVX2) != 0;  // else libjpeg-turbo is compared with itself
  for (const Header& header : headers()) {
    for (const JpegKind& kind : testing::common_samplings()) {
      SCOPED_TRACE(std::string(header.what) + ", " + kind.name);
      const File file = header.change(testing::written_jpeg(kind, 71, 45, 80, JpegContent::kScene, 1));
      testing::JpegPaths paths;
      for (int i = 0; i < 12; ++i) {
        const auto region = static_cast<std::uint64_t>(i < 4 ? 0 : i);
        ASSERT_EQ(paths.difference(file, {.channels = i % 3 == 0 ? 1 : 3, .strict = i % 4 < 2, .region = region}), "");
      }
      EXPECT_EQ(paths.own() > 0, has_path && header.ours) << paths.own() << " of " << paths.compared();
    }
  }
}

// A segment APP1 with a TIFF block that has only an orientation.
File segment_of(const std::string& name, int orientation) {
  File file;
  const std::string tiff("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  const std::string content = name + tiff + static_cast<char>(orientation) + std::string(7, '\0');
  file = with(file, 0, {0xFF, 0xE1, 0, static_cast<int>(content.size()) + 2});
  for (const char value : content) {
    file = with(file, file.size(), {value});
  }
  return file;
}

TEST(JpegPathHeader, TheFirstExifSegmentCounts) {
  const File whole = testing::written_jpeg({.name = "4:4:4"}, 40, 24, 80, JpegContent::kScene, 1);
  const std::string exif("Exif\0\0", 6);
  for (const JpegPath path : {JpegPath::kFastest, JpegPath::kLibrary}) {
    ImageDecoder decoder(path);
    const auto width_with = [&](const std::vector<File>& segments) {
      File file(whole.begin(), whole.begin() + 2);
      for (const File& segment : segments) {
        file.insert(file.end(), segment.begin(), segment.end());
      }
      file.insert(file.end(), whole.begin() + 2, whole.end());
      return decoder.open(file, 3, {}, "x.jpg").width;
    };
    EXPECT_EQ(width_with({}), 40);
    EXPECT_EQ(width_with({segment_of(exif, 6)}), 24);
    EXPECT_EQ(width_with({}), 40) << "of the file before";
    EXPECT_EQ(width_with({segment_of("http:", 6)}), 40);
    EXPECT_EQ(width_with({segment_of("http:", 1), segment_of(exif, 6), segment_of(exif, 1)}), 24);
    EXPECT_EQ(width_with({segment_of(exif, 1), segment_of(exif, 6)}), 40);
  }
}

}  // namespace
}  // namespace stoker::data
