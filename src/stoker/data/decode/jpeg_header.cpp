// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_header.h"

#include <algorithm>

#include "stoker/data/decode/exif.h"

namespace stoker::data {

const std::array<std::uint8_t, kBlockSize> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

namespace {

// Second bytes of markers.
constexpr int kSof0 = 0xC0, kDht = 0xC4, kSoi = 0xD8, kSos = 0xDA, kDqt = 0xDB, kApp0 = 0xE0, kApp1 = 0xE1,
              kApp14 = 0xEE, kApp15 = 0xEF, kCom = 0xFE;

// Reads one header, segment by segment.
class HeaderReader {
 public:
  HeaderReader(Bytes file, BaselineHeader& header) : file_(file), header_(header) {}

  bool read();

 private:
  [[nodiscard]] static int byte(Bytes part, std::size_t i) { return std::to_integer<int>(part[i]); }
  [[nodiscard]] static int word(Bytes part, std::size_t i) { return byte(part, i) << 8 | byte(part, i + 1); }

  bool segment(int marker, Bytes content);
  bool application(int marker, Bytes content);
  bool quantisers(Bytes content);
  bool huffman(Bytes content);
  bool frame(Bytes content);
  bool scan(Bytes content);
  [[nodiscard]] bool sampling_is_known() const;

  Bytes file_;
  BaselineHeader& header_;
  std::array<int, 3> ids_{};
  unsigned have_quantisers_ = 0;  // bit i: table i
  bool jfif_ = false, adobe_ = false, exif_ = false;
  int adobe_transform_ = 0;
};

bool HeaderReader::read() {
  header_.image = {};
  header_.dc.fill({});
  header_.ac.fill({});
  if (file_.size() < 4 || word(file_, 0) != (0xFF00 | kSoi)) {
    return false;
  }
  for (std::size_t at = 2; at + 4 <= file_.size();) {
    const int marker = byte(file_, at + 1), length = word(file_, at + 2);
    if (byte(file_, at) != 0xFF || length < 2 || static_cast<std::size_t>(length) > file_.size() - at - 2) {
      return false;
    }
    const Bytes content = file_.subspan(at + 4, static_cast<std::size_t>(length) - 2);
    at += 2 + static_cast<std::size_t>(length);
    if (marker == kSos) {
      header_.scan = at;
      return scan(content);
    }
    if (!segment(marker, content)) {
      return false;
    }
  }
  return false;
}

bool HeaderReader::segment(int marker, Bytes content) {
  switch (marker) {
    case kSof0: return frame(content);
    case kDqt: return quantisers(content);
    case kDht: return huffman(content);
    case kCom: return true;
    default: return marker >= kApp0 && marker <= kApp15 && application(marker, content);
  }
}

// Notes what decides colours and orientation.
bool HeaderReader::application(int marker, Bytes content) {
  const std::string_view text = as_text(content);
  if (marker == kApp0 && content.size() >= 14 && text.starts_with(std::string_view("JFIF\0", 5))) {
    jfif_ = true;
    return byte(content, 5) == 1;  // libjpeg-turbo warns of other major versions
  }
  if (marker == kApp14 && content.size() >= 12 && text.starts_with("Adobe")) {
    adobe_ = true;
    adobe_transform_ = byte(content, 11);
  }
  if (marker == kApp1 && !exif_ && text.starts_with(std::string_view("Exif\0\0", 6))) {
    exif_ = true;
    header_.image.orientation = exif_orientation(content.subspan(6));
  }
  return true;
}

bool HeaderReader::quantisers(Bytes content) {
  constexpr std::size_t kTable = 1 + kBlockSize;  // of 8-bit values; others are for 12-bit images
  if (content.size() % kTable != 0) {
    return false;
  }
  for (; !content.empty(); content = content.subspan(kTable)) {
    const int number = byte(content, 0);
    if (number > 3) {
      return false;
    }
    have_quantisers_ |= 1U << number;
    for (std::size_t k = 0; k < kBlockSize; ++k) {
      header_.quantisers[static_cast<std::size_t>(number)][kNaturalOrder[k]] =
          static_cast<std::uint16_t>(byte(content, 1 + k));
    }
  }
  return true;
}

bool HeaderReader::huffman(Bytes content) {
  constexpr std::size_t kCounts = 16;
  while (content.size() > kCounts) {
    const int kind = byte(content, 0);
    std::size_t symbols = 0;
    for (std::size_t i = 0; i < kCounts; ++i) {
      symbols += static_cast<std::size_t>(byte(content, 1 + i));
    }
    if ((kind & ~0x13) != 0 || symbols > 256 || content.size() < 1 + kCounts + symbols) {
      return false;
    }
    auto& tables = kind >= 0x10 ? header_.ac : header_.dc;
    tables[static_cast<std::size_t>(kind & 3)] = content.subspan(1, kCounts + symbols);
    content = content.subspan(1 + kCounts + symbols);
  }
  return content.empty();
}

bool HeaderReader::frame(Bytes content) {
  StoredImage& image = header_.image;
  if (image.channels != 0 || content.size() < 6 || byte(content, 0) != 8) {
    return false;
  }
  image.height = word(content, 1);
  image.width = word(content, 3);
  image.channels = byte(content, 5);
  constexpr int kMaxSide = 65'500;  // JPEG_MAX_DIMENSION of libjpeg-turbo, which has its own words for more
  if (image.width < 1 || image.width > kMaxSide || image.height < 1 || image.height > kMaxSide ||
      (image.channels != 1 && image.channels != 3) ||
      content.size() != 6 + 3 * static_cast<std::size_t>(image.channels)) {
    return false;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(image.channels); ++i) {
    const Bytes part = content.subspan(6 + 3 * i, 3);
    ids_[i] = byte(part, 0);
    header_.components[i] = {.across = byte(part, 1) >> 4, .down = byte(part, 1) & 15, .quantiser = byte(part, 2)};
  }
  return sampling_is_known();
}

bool HeaderReader::sampling_is_known() const {
  const auto& [luma, blue, red] = header_.components;
  // libjpeg-turbo does not interpolate chroma of one or two columns.
  const bool is_narrow = luma.across == 2 && header_.image.width <= 4;
  if (luma.across < 1 || luma.across > 2 || luma.down < 1 || luma.down > 2 || is_narrow) {
    return false;
  }
  const auto is_single = [](const JpegComponent& each) { return each.across == 1 && each.down == 1; };
  // libjpeg-turbo decodes both rows of blocks of a grey image with 2 down at once, and sees damage in the lower one.
  return header_.image.channels == 1 ? luma.down == 1 : is_single(blue) && is_single(red);
}

bool HeaderReader::scan(Bytes content) {
  const auto count = static_cast<std::size_t>(header_.image.channels);
  if (count == 0 || content.size() != 4 + 2 * count || byte(content, 0) != header_.image.channels ||
      byte(content, 1 + 2 * count) != 0 || byte(content, 2 + 2 * count) != kBlockSize - 1 ||
      byte(content, 3 + 2 * count) != 0) {
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    JpegComponent& each = header_.components[i];
    const int tables = byte(content, 2 + 2 * i);
    each.dc = tables >> 4;
    each.ac = tables & 15;
    if (byte(content, 1 + 2 * i) != ids_[i] || std::count(ids_.begin(), ids_.begin() + count, ids_[i]) != 1 ||
        each.dc > 3 || each.ac > 3 || each.quantiser > 3 || (have_quantisers_ >> each.quantiser & 1) == 0) {
      return false;
    }
  }
  if (count == 1) {
    header_.components[0].across = header_.components[0].down = 1;  // a scan of one component has no MCUs of several
    return true;
  }
  return jfif_ || (adobe_ ? adobe_transform_ == 1 : ids_ != std::array<int, 3>{'R', 'G', 'B'});
}

}  // namespace

bool read_baseline_header(Bytes file, BaselineHeader& header) { return HeaderReader(file, header).read(); }

}  // namespace stoker::data
