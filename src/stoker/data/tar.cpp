// SPDX-License-Identifier: Apache-2.0
// Format: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format".
#include "stoker/data/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

constexpr std::int64_t kBlock = 512;             // bytes; everything is padded to it
constexpr std::int64_t kMaxExtension = 1 << 20;  // bytes of a long name or a pax header
constexpr std::int64_t kProgressEvery = 10'000;  // members

using Block = std::array<char, kBlock>;

std::string_view text_field(const Block& block, std::size_t offset, std::size_t length) {
  const std::string_view field(block.data() + offset, length);
  return field.substr(0, field.find('\0'));
}

// Octal digits, or base 256 if the first bit is set (GNU); empty if it is neither, or beyond 63 bits.
std::optional<std::int64_t> number_field(const Block& block, std::size_t offset, std::size_t length) {
  std::string_view field(block.data() + offset, length);
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7F;
    for (const char c : field.substr(1)) {
      if (value >> 55 != 0) {
        return std::nullopt;
      }
      value = (value << 8) | static_cast<unsigned char>(c);
    }
    return static_cast<std::int64_t>(value);
  }
  const std::size_t start = field.find_first_not_of(' ');
  field = field.substr(std::min(start, field.size()));
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (field.empty()) {
    return 0;
  }
  return error == std::errc{} && end == field.data() + field.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

bool checksum_is_right(const Block& block) {
  std::int64_t sum = 8 * ' ';  // the checksum field counts as blanks
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += i < 148 || i >= 156 ? static_cast<unsigned char>(block[i]) : 0;
  }
  return number_field(block, 148, 8) == sum;
}

// What a pax header changes for the next member. Records are "<length> <key>=<value>\n".
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::int64_t> size;
  bool good = true;
};

PaxRecords parse_pax(std::string_view text) {
  PaxRecords records;
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || length <= digits + 1 || length > text.size() || text[digits] != ' ' ||
        text[length - 1] != '\n') {
      records.good = text.find_first_not_of('\0') == std::string_view::npos;
      break;
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : record.substr(equals + 1);
    if (key == "path") {
      records.path = value;
    } else if (key == "size") {
      std::int64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      records.good &= parsed.ec == std::errc{} && parsed.ptr == value.data() + value.size() && size >= 0;
      records.size = size;
    }
    text.remove_prefix(length);
  }
  return records;
}

// Without "./" in front; empty if it names nothing.
std::string_view trimmed(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  }
  return path;
}

// True for a path that would leave the folder it were extracted to.
bool climbs(std::string_view path) {
  if (path.starts_with('/')) {
    return true;
  }
  while (true) {
    const std::size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") {
      return true;
    }
    if (slash == std::string_view::npos) {
      return false;
    }
    path.remove_prefix(slash + 1);
  }
}

std::string_view compression_of(const Block& block) {
  const std::string_view head(block.data(), 6);
  return head.starts_with("\x1F\x8B")           ? "gzip"
         : head.starts_with("\x28\xB5\x2F\xFD") ? "zstd"
         : head.starts_with(
               "\xFD"
               "7zXZ")
             ? "xz"
         : head.starts_with("BZh") ? "bzip2"
                                   : "";
}

}  // namespace

TarFile::TarFile(std::filesystem::path path, const std::function<void(std::int64_t)>& progress)
    : path_(std::move(path)) {
  const std::string name = printable(path_.native());
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail<DataError>("data.tar", "{}: cannot be opened: {}", name, std::strerror(errno));
  }
  try {
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      fail<DataError>("data.tar", "{}: is not a regular file", name);
    }
    file_size_ = facts.st_size;
    read_index(progress);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

TarFile::~TarFile() { ::close(descriptor_); }

void TarFile::read(std::int64_t offset, std::int64_t size, std::vector<std::byte>& buffer) const {
  if (offset < 0 || size < 0 || size > file_size_ - offset) {
    fail<DataError>("data.tar", "{}: bytes {} to {} are beyond its {} bytes", printable(path_.native()), offset,
                    offset + size, file_size_);
  }
  buffer.resize(static_cast<std::size_t>(size));
  for (std::int64_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(descriptor_, buffer.data() + done, static_cast<std::size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      fail<DataError>("data.tar", "{}: cannot be read at byte {}: {}", printable(path_.native()), offset + done,
                      got < 0 ? std::strerror(errno) : "the file has become shorter");
    }
    done += got;
  }
}

void TarFile::read_index(const std::function<void(std::int64_t)>& progress) {
  const std::string name = printable(path_.native());
  std::vector<std::byte> buffer;
  Block block;
  PaxRecords next;  // what the headers before a member say about it
  for (std::int64_t at = 0; at < file_size_;) {
    if (file_size_ - at < kBlock) {
      fail<DataError>("data.tar", "{}: ends in the middle of a header at byte {}; it is truncated or no tar", name, at);
    }
    read(at, kBlock, buffer);
    std::memcpy(block.data(), buffer.data(), block.size());
    if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) {
      break;  // the end mark
    }
    const std::optional<std::int64_t> stored = number_field(block, 124, 12);
    if (!checksum_is_right(block) || !stored) {
      const std::string_view compressed = at == 0 ? compression_of(block) : "";
      if (!compressed.empty()) {
        fail<DataError>("data.tar", "{}: is compressed ({}); unpack it first: pictures are compressed already", name,
                        compressed);
      }
      fail<DataError>("data.tar", "{}: wrong header checksum at byte {}; it is damaged or no tar", name, at);
    }
    const char type = block[156];
    const bool extension = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    const std::int64_t size = extension ? *stored : next.size.value_or(*stored);
    const std::int64_t data = at + kBlock;
    if (size > file_size_ - data || (extension && size > kMaxExtension)) {
      fail<DataError>("data.tar", "{}: the member at byte {} says {} bytes, the file ends after {}; it is truncated",
                      name, at, size, file_size_ - data);
    }
    at = data + (size + kBlock - 1) / kBlock * kBlock;
    if (extension) {
      read(data, size, buffer);
      if (type == 'L') {
        const std::string_view text = as_text(buffer);
        next.path = text.substr(0, text.find('\0'));
      } else if (type == 'x') {
        const PaxRecords records = parse_pax(as_text(buffer));
        if (!records.good) {
          fail<DataError>("data.tar", "{}: the extended header at byte {} is damaged", name, data - kBlock);
        }
        next.path = records.path ? records.path : next.path;
        next.size = records.size ? records.size : next.size;
      }
      continue;
    }
    const bool ustar = text_field(block, 257, 6) == "ustar";  // GNU's magic is "ustar  " and has no prefix
    const std::string_view prefix = ustar ? text_field(block, 345, 155) : "";
    std::string path = next.path.value_or(prefix.empty() ? std::string(text_field(block, 0, 100))
                                                         : fmt::format("{}/{}", prefix, text_field(block, 0, 100)));
    path = trimmed(path);
    next = {};
    if (type == '0' || type == '\0' || type == '7') {
      if (climbs(path)) {
        fail<DataError>("data.tar",
                        "{}: member \"{}\" at byte {} is absolute or climbs out of its folder; such a tar is refused",
                        name, printable(path), data - kBlock);
      }
      if (!path.empty() && path.back() != '/') {  // old tars mark folders so
        members_.push_back({std::move(path), data, size});
      }
      if (progress && static_cast<std::int64_t>(members_.size()) % kProgressEvery == 0) {
        progress(static_cast<std::int64_t>(members_.size()));
      }
    } else if (type != '5') {
      ++passed_over_;
    }
  }
}

}  // namespace stoker::data
