// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/gzip_file.h"

#include <zlib.h>

#include <array>
#include <fstream>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::observe::profile {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "observe.profile";
constexpr std::size_t kChunk = std::size_t{1} << 18;

class Deflate {
 public:
  Deflate() {
    constexpr int kGzip = 16;  // added to the window's bits
    if (deflateInit2(&stream_, /*level=*/3, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      fail<OutOfMemory>(kWhere, "there is no memory to compress the trace");
    }
  }
  ~Deflate() { deflateEnd(&stream_); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  void put(std::vector<char>& bytes, std::size_t size, bool last, FileWriter& out) {
    stream_.next_in = reinterpret_cast<Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(size);
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      ::deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      out.write(as_bytes({packed_.data(), packed_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
  std::vector<char> packed_ = std::vector<char>(kChunk);
};

struct Remove {
  const fs::path& path;
  ~Remove() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

}  // namespace

void gzip_file(const fs::path& plain, const fs::path& packed) {
  const Remove remove{plain};
  std::ifstream in(plain, std::ios::binary);
  if (!in) {
    fail<IoError>(kWhere, "{}: the trace could not be written; is the disk full?", printable(plain.native()));
  }
  write_file_atomically(packed, [&](FileWriter& out) {
    Deflate deflate;
    std::vector<char> bytes(kChunk);
    for (bool last = false; !last;) {
      in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      const auto size = static_cast<std::size_t>(in.gcount());
      last = size < bytes.size();
      deflate.put(bytes, size, last, out);
    }
  });
}

}  // namespace stoker::observe::profile
