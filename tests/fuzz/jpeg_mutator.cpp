// SPDX-License-Identifier: Apache-2.0
// Makes inputs for jpeg_fuzz.cpp that are still JPEGs, since libFuzzer's own changes nearly all fail in the header:
// bits of the entropy-coded data without its stuffed bytes, contents of one marker, sizes, and new files of every kind.
// Called by libFuzzer.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "support/jpeg_kinds.h"
#include "support/jpeg_symbols.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace stoker::fuzz {
namespace {

using Buffer = std::vector<std::uint8_t>;
using testing::JpegKind;
using testing::QuickRandom;

struct Segment {
  std::uint8_t marker = 0;
  std::size_t begin = 0, size = 0;  // of the content, without marker and length
};

// The segments of the header, the start of scan last; empty if there is none.
std::vector<Segment> header_of(std::span<const std::uint8_t> file) {
  std::vector<Segment> segments;
  for (std::size_t at = 2; at + 4 <= file.size() && file[at] == 0xFF;) {
    const std::size_t length = (std::size_t{file[at + 2]} << 8) + file[at + 3];
    if (length < 2 || at + 2 + length > file.size()) {
      break;
    }
    segments.push_back({file[at + 1], at + 4, length - 2});
    if (file[at + 1] == 0xDA) {
      return segments;
    }
    at += 2 + length;
  }
  return {};
}

// The entropy-coded bytes from `from` up to the next marker.
std::size_t end_of_piece(std::span<const std::uint8_t> file, std::size_t from) {
  while (from < file.size() && !(file[from] == 0xFF && from + 1 < file.size() && file[from + 1] != 0)) {
    ++from;
  }
  return from;
}

Buffer mutated(Buffer bytes, std::size_t more) {
  const std::size_t size = bytes.size();
  if (size + more == 0) {
    return bytes;
  }
  bytes.resize(size + more);
  bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
  return bytes;
}

void flip_bits(Buffer& bytes, QuickRandom& random) {
  for (int count = 1 + random.below(3); count > 0 && !bytes.empty(); --count) {
    bytes[static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())))] ^=
        static_cast<std::uint8_t>(1 << random.below(8));
  }
}

// Changes one piece of the scan, between restart markers if it has some, and stuffs it again.
void change_scan(Buffer& file, std::size_t scan, QuickRandom& random) {
  std::size_t begin = scan, end = end_of_piece(file, scan);
  for (int skip = random.below(4); skip > 0 && end + 2 < file.size() && (file[end + 1] & 0xF8) == 0xD0; --skip) {
    begin = end + 2, end = end_of_piece(file, begin);
  }
  Buffer plain;
  for (std::size_t at = begin; at < end; ++at) {
    plain.push_back(file[at]);
    at += file[at] == 0xFF && at + 1 < end ? 1 : 0;  // the zero that follows
  }
  if (random.below(2) == 0) {
    flip_bits(plain, random);
  } else {
    plain = mutated(std::move(plain), 8);
  }
  Buffer stuffed;
  for (const std::uint8_t byte : plain) {
    stuffed.push_back(byte);
    if (byte == 0xFF) {
      stuffed.push_back(0);
    }
  }
  file.erase(file.begin() + static_cast<std::ptrdiff_t>(begin), file.begin() + static_cast<std::ptrdiff_t>(end));
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(begin), stuffed.begin(), stuffed.end());
}

// Changes the content of one marker but not its length.
void change_header(Buffer& file, const std::vector<Segment>& header, QuickRandom& random) {
  const Segment& segment = header[static_cast<std::size_t>(random.below(static_cast<int>(header.size())))];
  const auto first = file.begin() + static_cast<std::ptrdiff_t>(segment.begin);
  Buffer content(first, first + static_cast<std::ptrdiff_t>(segment.size));
  if (segment.marker >= 0xC0 && segment.marker <= 0xC2 && segment.size >= 9 && random.below(2) == 0) {
    content[2] = static_cast<std::uint8_t>(1 + random.below(56));  // height, width; the high bytes are 0
    content[4] = static_cast<std::uint8_t>(1 + random.below(56));
    for (std::size_t at = 7; at < content.size() && random.below(3) == 0; at += 3) {
      content[at] = static_cast<std::uint8_t>((1 + random.below(4)) * 16 + 1 + random.below(4));
    }
  } else if (random.below(2) == 0) {
    flip_bits(content, random);
  } else {
    content = mutated(std::move(content), 0);
  }
  std::copy_n(content.begin(), std::min(content.size(), segment.size), first);
}

std::vector<std::byte> new_symbols(QuickRandom& random) {
  testing::SymbolJpeg kind{.width = 1 + random.below(40), .height = 1 + random.below(40), .wild = random.below(2) == 0};
  kind.factors[0] = {1 + random.below(2), 1 + random.below(2)};
  kind.factors.resize(random.below(4) == 0 ? 1 : 3, {1, 1});
  kind.restart = std::max(0, random.below(8) - 3);
  return testing::symbol_jpeg(kind, random());
}

std::vector<std::byte> new_picture(QuickRandom& random) {
  std::vector<JpegKind> kinds = testing::common_samplings();
  const int which = random.below(8);
  if (which < 2) {
    kinds = which == 0 ? testing::rare_samplings() : testing::colour_spaces();
  } else if (which < 5) {
    kinds = testing::codings_of(kinds[static_cast<std::size_t>(random.below(static_cast<int>(kinds.size())))]);
  }
  const JpegKind& kind = kinds[static_cast<std::size_t>(random.below(static_cast<int>(kinds.size())))];
  const auto content = static_cast<testing::JpegContent>(random.below(testing::kJpegContents));
  const int width = 1 + random.below(48), height = 1 + random.below(48), quality = 1 + random.below(100);
  return testing::written_jpeg(kind, width, height, quality, content, random());
}

Buffer new_file(QuickRandom& random) {
  const std::vector<std::byte> bytes = random.below(2) == 0 ? new_symbols(random) : new_picture(random);
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace stoker::fuzz;
  QuickRandom random(seed);
  Buffer file(data, data + size);
  const std::vector<Segment> header = header_of(file);
  const int choice = random.below(16);
  if (choice == 0) {
    file = new_file(random);
  } else if (header.empty() || choice == 1) {
    file = mutated(std::move(file), std::min<std::size_t>(64, max_size - size));
  } else if (choice < 11) {
    change_scan(file, header.back().begin + header.back().size, random);
  } else if (choice < 13) {  // with its markers
    const auto scan = file.begin() + static_cast<std::ptrdiff_t>(header.back().begin + header.back().size);
    const Buffer rest = mutated({scan, file.end()}, 8);
    file.erase(scan, file.end());
    file.insert(file.end(), rest.begin(), rest.end());
  } else {
    change_header(file, header, random);
  }
  file.resize(std::min(file.size(), max_size));
  for (std::size_t at = 0; at < std::min<std::size_t>(3, file.size()); ++at) {
    file[at] = at == 1 ? 0xD8 : 0xFF;
  }
  std::ranges::copy(file, data);
  return file.size();
}
