// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/tar_header.h"

namespace stoker::data {
namespace {

constexpr std::int64_t kMaxExtension = 1 << 20;  // bytes of a long name or a pax header
constexpr std::int64_t kProgressEvery = 10'000;  // members

}  // namespace

TarFile::TarFile(std::filesystem::path path, const std::function<void(std::int64_t)>& progress)
    : TarFile(std::move(path), Known()) {
  read_index(progress);
}

TarFile::TarFile(std::filesystem::path path, Known) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail<DataError>("data.tar", "{}: cannot be opened: {}", printable(path_.native()), std::strerror(errno));
  }
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(descriptor_);
    fail<DataError>("data.tar", "{}: is not a regular file", printable(path_.native()));
  }
  stamp_ = stamp_from(facts);
  file_size_ = facts.st_size;
}

TarFile::~TarFile() { ::close(descriptor_); }

void TarFile::read(std::int64_t offset, std::int64_t size, std::vector<std::byte>& buffer) const {
  if (offset < 0 || size < 0 || size > file_size_ - offset) {
    fail<DataError>("data.tar", "{}: {} bytes at byte {} are beyond the end; the file has {} bytes",
                    printable(path_.native()), size, offset, file_size_);
  }
  if (size > kMostSampleBytes) {
    fail<DataError>("data.tar", "{}: {} bytes at byte {} exceed the limit for one file, {} bytes",
                    printable(path_.native()), size, offset, kMostSampleBytes);
  }
  buffer.resize(static_cast<std::size_t>(size));
  for (std::int64_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(descriptor_, buffer.data() + done, static_cast<std::size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno == ENOMEM) {
      throw std::bad_alloc();
    }
    if (got <= 0) {
      fail<DataError>("data.tar", "{}: cannot be read at byte {}: {}", printable(path_.native()), offset + done,
                      got < 0 ? std::strerror(errno) : "the file is shorter than before");
    }
    done += got;
  }
}

TarHeader TarFile::read_header(std::int64_t at, bool& end_mark) const {
  const std::string name = printable(path_.native());
  if (file_size_ - at < kTarBlock) {
    fail<DataError>("data.tar", "{}: ends in the middle of a header at byte {}; it is truncated or not a tar file",
                    name, at);
  }
  std::vector<std::byte> bytes;
  read(at, kTarBlock, bytes);
  TarBlock block;
  std::memcpy(block.data(), bytes.data(), block.size());
  end_mark = std::ranges::all_of(block, [](char c) { return c == '\0'; });
  if (end_mark) {
    return {};
  }
  const std::optional<TarHeader> header = parse_tar_header(block);
  if (!header) {
    const std::string_view compressed = at == 0 ? compression_of(as_text(bytes)) : "";
    if (!compressed.empty()) {
      fail<DataError>("data.tar", "{}: is compressed ({}); decompress it first (images are compressed already)", name,
                      compressed);
    }
    fail<DataError>("data.tar", "{}: wrong header checksum at byte {}; it is damaged or not a tar file", name, at);
  }
  return *header;
}

void TarFile::read_index(const std::function<void(std::int64_t)>& progress) {
  const std::string name = printable(path_.native());
  std::vector<std::byte> content;
  TarExtension next;
  bool end_mark = false;
  for (std::int64_t at = 0; at < file_size_;) {
    TarHeader header = read_header(at, end_mark);
    if (end_mark) {
      break;
    }
    const std::int64_t size = header.is_extension() ? header.size : next.size.value_or(header.size);
    const std::int64_t data = at + kTarBlock;
    if (size > file_size_ - data || (header.is_extension() && size > kMaxExtension)) {
      fail<DataError>("data.tar", "{}: the member at byte {} has {} bytes, but the file ends after {}; it is truncated",
                      name, at, size, file_size_ - data);
    }
    if (header.is_extension()) {
      read(data, size, content);
      if (!read_tar_extension(header.type, as_text(content), next)) {
        fail<DataError>("data.tar", "{}: the extended header at byte {} is damaged", name, at);
      }
    } else {
      add_member(header, std::exchange(next, {}), data, size);
      if (progress && static_cast<std::int64_t>(members_.size()) % kProgressEvery == 0) {
        progress(static_cast<std::int64_t>(members_.size()));
      }
    }
    at = data + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
}

void TarFile::add_member(const TarHeader& header, const TarExtension& extension, std::int64_t data, std::int64_t size) {
  std::string path(trimmed_path(extension.path ? *extension.path : header.path));
  if (!header.is_file()) {
    passed_over_ += header.type == '5' ? 0 : 1;  // folders add nothing to the paths of their files
    return;
  }
  if (climbs_out(path)) {
    fail<DataError>(
        "data.tar",
        "{}: the path of member \"{}\" at byte {} is absolute or contains \"../\"; such a tar file is refused",
        printable(path_.native()), printable(path), data - kTarBlock);
  }
  if (!path.empty() && path.back() != '/') {  // old tar files mark folders this way
    members_.push_back({std::move(path), data, size});
  }
}

}  // namespace stoker::data
