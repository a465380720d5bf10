// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/table/packed_text.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.table";
using namespace std::string_view_literals;

// First bytes of formats that users mistake for text tables.
struct Foreign {
  std::string_view magic, name, advice;
};
constexpr std::string_view kUnpack = "decompress it, or compress it with gzip or zstd";
constexpr std::array<Foreign, 9> kForeign = {{
    {"PAR1"sv, "a Parquet file",
     "write it as CSV: python3 -c 'import pandas, sys; pandas.read_parquet(sys.argv[1]).to_csv(sys.argv[2], "
     "index=False)' IN.parquet OUT.csv.gz"},
    {"ARROW1"sv, "an Arrow or Feather file",
     "write it as CSV: python3 -c 'import pandas, sys; pandas.read_feather(sys.argv[1]).to_csv(sys.argv[2], "
     "index=False)' IN.feather OUT.csv.gz"},
    {"\xFF\xFF\xFF\xFF"sv, "an Arrow stream, as in Hugging Face datasets",
     "write it as CSV: python3 -c 'import datasets, sys; datasets.Dataset.from_file(sys.argv[1]).to_csv(sys.argv[2])' "
     "IN.arrow OUT.csv"},
    {"PK\x03\x04"sv, "a spreadsheet or a zip archive", "save it as CSV, or unpack it"},
    {"\xD0\xCF\x11\xE0"sv, "an old spreadsheet", "save it as CSV"},
    {"SQLite format 3"sv, "a SQLite database", "write a table of it as CSV: sqlite3 -header -csv FILE 'select ...'"},
    {"BZh"sv, "compressed with bzip2", kUnpack},
    {"\xFD\x37zXZ\x00"sv, "compressed with xz", kUnpack},
    {"\x04\x22\x4D\x18"sv, "compressed with lz4", kUnpack},
}};

void refuse_foreign(std::string_view bytes, const std::string& file) {
  const bool binary = bytes.find('\0') != std::string_view::npos;  // text may also begin with PAR1
  for (const Foreign& each : kForeign) {
    if (binary && bytes.starts_with(each.magic)) {
      fail<DataError>(kWhere, "{} is {}; expected a text table; {}", file, each.name, each.advice);
    }
  }
}

// Output of a decompressor for part of the input.
struct Step {
  std::size_t written = 0;
  bool done = false;
};

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Fills out with the next output. DataError for damage.
  virtual Step next(std::span<char> out) = 0;
};

class Gunzip final : public Unpacker {
 public:
  Gunzip(Bytes bytes, const std::string& file) : bytes_(bytes), file_(file) {
    constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header (zlib.h)
    if (inflateInit2(&stream_, kGzip) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Step next(std::span<char> out) override {
    constexpr std::size_t kPiece = std::numeric_limits<uInt>::max();
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const auto piece = static_cast<uInt>(std::min(bytes_.size(), kPiece));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data()));  // zlib only reads it
    stream_.avail_in = piece;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    bytes_ = bytes_.subspan(piece - stream_.avail_in);
    if (code != Z_OK && code != Z_STREAM_END) {
      fail<DataError>(kWhere, "{}: the gzip data is {}; get the file again", file_,
                      code == Z_BUF_ERROR ? "truncated" : "damaged");
    }
    const bool done = code == Z_STREAM_END && bytes_.empty();
    if (code == Z_STREAM_END && !done) {
      inflateReset(&stream_);  // the next member
    }
    return {out.size() - stream_.avail_out, done};
  }

 private:
  Bytes bytes_;
  const std::string& file_;
  z_stream stream_{};
};

class Unzstd final : public Unpacker {
 public:
  Unzstd(Bytes bytes, const std::string& file)
      : input_{bytes.data(), bytes.size(), 0}, file_(file), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) {
      throw std::bad_alloc();
    }
  }

  Step next(std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_.get(), &output, &input_);
    if (ZSTD_isError(left) != 0) {
      fail<DataError>(kWhere, "{}: the Zstandard data is damaged: {}; get the file again", file_,
                      ZSTD_getErrorName(left));
    }
    if (left != 0 && input_.pos == input_.size && output.pos < output.size) {
      fail<DataError>(kWhere, "{}: the Zstandard data is truncated; get the file again", file_);
    }
    return {output.pos, left == 0 && input_.pos == input_.size};
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  ZSTD_inBuffer input_;
  const std::string& file_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
};

std::string unpacked(Unpacker& unpacker, const std::string& file, std::size_t limit) {
  std::string text;
  std::vector<char> piece(std::size_t{1} << 20);
  for (Step step; !step.done;) {
    step = unpacker.next(piece);
    if (step.written > limit - text.size()) {
      fail<DataError>(kWhere, "{}: decompresses to more than {} bytes; decompress it yourself if that size is intended",
                      file, limit);
    }
    text.append(piece.data(), step.written);
  }
  return text;
}

}  // namespace

std::size_t most_unpacked(std::size_t packed) {
  constexpr std::size_t kRatio = 256, kLeast = std::size_t{1} << 28;
  return std::max(kLeast, packed > std::numeric_limits<std::size_t>::max() / kRatio ? packed : kRatio * packed);
}

std::string read_packed_text(const std::filesystem::path& file, std::size_t limit) {
  const std::string name = printable(file.native());
  std::string bytes = read_text(file, limit);
  refuse_foreign(bytes, name);
  const std::size_t most = std::min(limit, most_unpacked(bytes.size()));
  if (bytes.starts_with("\x1F\x8B")) {
    Gunzip gunzip(as_bytes(bytes), name);
    bytes = unpacked(gunzip, name, most);
    refuse_foreign(bytes, name);
  } else if (bytes.starts_with("\x28\xB5\x2F\xFD")) {
    Unzstd unzstd(as_bytes(bytes), name);
    bytes = unpacked(unzstd, name, most);
    refuse_foreign(bytes, name);
  }
  return bytes;
}

}  // namespace stoker::data
