// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/npy_decode.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

constexpr std::size_t kMagic = 6;            // bytes of "\x93NUMPY"
constexpr std::size_t kMostHeader = 4096;    // bytes; the header of an image has about 118
constexpr int kMostAxes = 32;                // the limit of NumPy
constexpr std::int64_t kMostSide = 1 << 30;  // so that bytes fit into 64 bits

// Content of the header, a Python dictionary literal.
struct Header {
  std::optional<std::string> type;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;
};

// Reads {'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }. Returns false for anything else.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool read(Header& header) {
    if (!take('{')) {
      return false;
    }
    while (!take('}')) {
      std::string key;
      if (!quoted(key) || !take(':') || !value(key, header) || (!take(',') && !next_is('}'))) {
        return false;
      }
    }
    return next() == '\0';
  }

 private:
  char next() {  // the next character that is not a space; '\0' at the end
    const std::size_t at = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool next_is(char c) { return next() == c; }
  bool take(char c) {
    if (!next_is(c)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view text) {
    next();
    if (!rest_.starts_with(text)) {
      return false;
    }
    rest_.remove_prefix(text.size());
    return true;
  }
  bool quoted(std::string& text) {
    const char quote = next();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      return false;
    }
    text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool number(std::int64_t& value) {
    next();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) {
      return false;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool tuple(std::vector<std::int64_t>& sizes) {
    if (!take('(')) {
      return false;
    }
    while (!take(')')) {
      std::int64_t size = 0;
      if (sizes.size() >= kMostAxes || !number(size) || (!take(',') && !next_is(')'))) {
        return false;
      }
      sizes.push_back(size);
    }
    return true;
  }
  bool value(std::string_view key, Header& header) {
    if (key == "descr" && !header.type) {
      return quoted(header.type.emplace());  // a list of fields is not an image
    }
    if (key == "fortran_order" && !header.fortran) {
      header.fortran = word("True");
      return *header.fortran || word("False");
    }
    return key == "shape" && !header.shape && tuple(header.shape.emplace());
  }

  std::string_view rest_;
};

[[noreturn]] void fail_damaged(std::string_view name, std::string_view why) {
  fail<DataError>("data.npy", "{}: damaged or unsupported .npy: {}", name, why);
}

// The text of the header, and the start of the values.
std::pair<std::string_view, std::size_t> header_text(Bytes file, std::string_view name) {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(file[at]); };
  if (file.size() < kMagic + 6) {
    fail_damaged(name, fmt::format("it has only {} bytes, less than a header", file.size()));
  }
  const std::size_t version = byte(kMagic);
  if (version < 1 || version > 3) {
    fail_damaged(name, fmt::format("the version is {}, not 1, 2 or 3", version));
  }
  const std::size_t start = kMagic + (version == 1 ? 4 : 6);
  const std::size_t low = byte(kMagic + 2) | byte(kMagic + 3) << 8;
  const std::size_t length = version == 1 ? low : low | byte(kMagic + 4) << 16 | byte(kMagic + 5) << 24;
  if (length > kMostHeader || length > file.size() - start) {
    fail_damaged(name, fmt::format("the header claims {} bytes", length));
  }
  return {as_text(file.subspan(start, length)), start + length};
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Sets the type of the values.
void read_type(const std::string& type, NpyImage& image, std::string_view name) {
  if (type == "|u1" || type == "u1" || type == "<u1" || type == ">u1") {
    return;
  }
  if (type != "<u2" && type != ">u2") {
    fail<DataError>("data.npy",
                    "{}: the values have type {}; save 8-bit integers, for values in 0 ... 1 with (255 * x).round()"
                    ".astype(numpy.uint8)",
                    name, printable(type));
  }
  image.value_bytes = 2;
  image.high_byte = type == "<u2" ? 1 : 0;
}

bool is_channels(std::int64_t size) { return size == 1 || size == 3 || size == 4; }

// Sets the size of the image.
void read_shape(const std::vector<std::int64_t>& shape, NpyImage& image, std::string_view name) {
  const std::size_t axes = shape.size();
  const bool grey = axes == 2;
  if (axes == 3 && !is_channels(shape[2]) && is_channels(shape[0])) {
    fail<DataError>("data.npy", "{}: the shape is {}, channels first; save x.transpose(1, 2, 0).copy()", name,
                    shape_text(shape));
  }
  if (!grey && (axes != 3 || !is_channels(shape[2]))) {
    fail<DataError>("data.npy",
                    "{}: the shape is {}; expected [height, width] or [height, width, 1, 3 or 4], one image per"
                    " file",
                    name, shape_text(shape));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (shape[i] > kMostSide) {
      fail<DataError>("data.npy", "{}: the shape is {}, too large for an image", name, shape_text(shape));
    }
  }
  image.stored.height = static_cast<int>(shape[0]);
  image.stored.width = static_cast<int>(shape[1]);
  image.stored.channels = grey ? 1 : static_cast<int>(shape[2]);
}

}  // namespace

NpyImage open_npy(Bytes file, std::string_view name) {
  const auto [text, start] = header_text(file, name);
  Header header;
  if (!Parser(text).read(header) || !header.type || !header.fortran || !header.shape) {
    fail_damaged(name, fmt::format("the header is \"{}\"", printable(text.substr(0, 200))));
  }
  NpyImage image;
  read_type(*header.type, image, name);
  read_shape(*header.shape, image, name);
  if (*header.fortran) {
    fail<DataError>("data.npy", "{}: is in Fortran order; save numpy.ascontiguousarray(x)", name);
  }
  image.values = file.subspan(start);
  const std::uint64_t expected = static_cast<std::uint64_t>(image.stored.width) *
                                 static_cast<std::uint64_t>(image.stored.height) *
                                 static_cast<std::uint64_t>(image.stored.channels * image.value_bytes);
  if (image.values.size() != expected) {
    fail<DataError>("data.npy", "{}: has {} bytes of values, but the shape {} needs {}", name, image.values.size(),
                    shape_text(*header.shape), expected);
  }
  return image;
}

void npy_part(const NpyImage& image, const augment::Region& region, int channels, augment::Image& out) {
  const int stored = image.stored.channels;
  const bool one = stored == 1 && channels == 1;
  const int step = stored < 3 ? 0 : image.value_bytes;  // from red to green; grey is repeated
  out.reshape(region.width, region.height, one ? 1 : 3, augment::kSlack);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < region.height; ++y) {
    const std::size_t first = static_cast<std::size_t>(region.top + y) * static_cast<std::size_t>(image.stored.width) +
                              static_cast<std::size_t>(region.left);
    const std::byte* from =
        image.values.data() + first * static_cast<std::size_t>(stored * image.value_bytes) + image.high_byte;
    for (int x = 0; x < region.width; ++x, from += stored * image.value_bytes) {
      for (int c = 0; c < out.channels; ++c) {
        *to++ = std::to_integer<std::uint8_t>(from[c * step]);
      }
    }
  }
}

}  // namespace stoker::data
