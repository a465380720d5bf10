// SPDX-License-Identifier: Apache-2.0
// A good image that cannot be decoded for lack of memory is not an unreadable image: else it would be replaced in
// silence. The libraries below use malloc, so a child process really runs out of memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "support/child.h"
#include "support/images.h"

namespace stoker::data {
namespace {

constexpr std::size_t kSmallest = 256;  // bytes; the exception itself needs less

std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Takes all memory in blocks of at least kSmallest bytes.
void use_up() {
  const rlimit none{mapped_bytes(), RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &none);
  for (std::size_t bytes = std::size_t{1} << 20; bytes >= kSmallest; bytes /= 2) {
    while (auto* block = static_cast<volatile char*>(std::malloc(bytes))) {
      block[0] = 1;
    }
  }
}

// 0: std::bad_alloc; 1: decoded; 2: DataError.
int decode_without_memory(const std::vector<std::byte>& file) {
  ImageDecoder decoder;
  use_up();
  try {
    const ImageDecoder::Size size = decoder.open(file, 3, {}, "x");
    (void)decoder.decode({0, 0, size.width, size.height}, "x");
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  } catch (const DataError&) {
    return 2;
  }
}

TEST(ImageDecodeMemory, NoMemoryIsNotABadImage) {
  if (mapped_bytes() > std::uint64_t{1} << 40) {
    GTEST_SKIP() << "a sanitizer's shadow memory leaves no way to run out of memory";
  }
  const auto folder = testing::source_folder() / "tests/data";
  for (const char* name : {"formats/smooth.jpg", "broken-images/made_here/cmyk_progressive.jpg", "formats/lossy.webp",
                           "formats/lossless.webp"}) {
    std::vector<std::byte> file;
    read_file(folder / name, file);
    EXPECT_EQ(testing::in_child([&] { return decode_without_memory(file); }).code, 0) << name;
  }
  const std::string png = testing::small_png(1);
  const Bytes bytes = as_bytes(png);
  const std::vector<std::byte> file(bytes.begin(), bytes.end());
  EXPECT_EQ(testing::in_child([&] { return decode_without_memory(file); }).code, 0) << "PNG";
}

}  // namespace
}  // namespace stoker::data
