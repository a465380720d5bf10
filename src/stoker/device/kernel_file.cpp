// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

namespace stoker::device {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::string read_kernel_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string_view kernel_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key) {
      return trimmed(line.substr(colon + 1));
    }
  }
  return {};
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::int64_t kernel_bytes(std::string_view text, std::string_view key) {
  const auto kilobytes = leading_number(kernel_field(text, key));
  return kilobytes ? *kilobytes * 1024 : -1;
}

KernelFile::KernelFile(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

KernelFile::~KernelFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

KernelFile::KernelFile(KernelFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), content_(std::move(other.content_)) {}

KernelFile& KernelFile::operator=(KernelFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(content_, other.content_);
  return *this;
}

std::string_view KernelFile::read() {
  constexpr std::size_t kStep = 4096;
  std::size_t size = 0;
  while (descriptor_ >= 0) {
    content_.resize(std::max(content_.size(), size + kStep));  // it shrinks never, so that it grows rarely
    const ssize_t more = ::pread(descriptor_, content_.data() + size, content_.size() - size, static_cast<off_t>(size));
    if (more <= 0) {
      break;
    }
    size += static_cast<std::size_t>(more);
  }
  return std::string_view(content_).substr(0, size);
}

}  // namespace stoker::device
