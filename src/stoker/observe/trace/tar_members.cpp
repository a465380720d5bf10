// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/fmt.h"
#include "stoker/base/tar_header.h"
#include "stoker/observe/trace/byte_stream.h"

namespace stoker::observe::trace {
namespace {

constexpr std::uint64_t kMaxExtension = 1 << 20;  // bytes of a long name or a pax header
constexpr std::size_t kSkipBytes = std::size_t{1} << 16;

std::uint64_t padding(std::uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

}  // namespace

class TarMembers::Window final : public ByteStream {
 public:
  Window(TarMembers& archive, std::uint64_t size) : archive_(archive), left_(size) {}
  std::size_t read(std::span<char> buffer) override {
    const std::size_t want = std::min<std::uint64_t>(buffer.size(), left_);
    const std::size_t got = archive_.archive_.read(buffer.first(want));
    left_ -= got;
    archive_.left_ -= got;
    truncated_ |= got < want;
    return got;
  }
  [[nodiscard]] std::string damage() const override {
    if (!truncated_) {
      return {};
    }
    const std::string why = archive_.archive_.damage();
    return why.empty() ? "the archive is truncated" : why;
  }

 private:
  TarMembers& archive_;
  std::uint64_t left_;
  bool truncated_ = false;
};

bool TarMembers::begins(std::span<const char> head) {
  TarBlock block;
  if (head.size() < block.size()) {
    return false;
  }
  std::memcpy(block.data(), head.data(), block.size());
  return std::ranges::any_of(block, [](char c) { return c != '\0'; }) && parse_tar_header(block).has_value();
}

bool TarMembers::skip(std::uint64_t bytes) {
  std::string waste(kSkipBytes, '\0');
  while (bytes > 0) {
    const std::size_t want = std::min<std::uint64_t>(bytes, waste.size());
    if (archive_.read(std::span(waste).first(want)) < want) {
      return false;
    }
    bytes -= want;
  }
  return true;
}

std::optional<TarMembers::Member> TarMembers::next() {
  TarExtension extension;
  const auto damaged = [&](std::string why) -> std::optional<Member> {
    damage_ = archive_.damage().empty() ? std::move(why) : archive_.damage();
    return std::nullopt;
  };
  if (!skip(std::exchange(left_, 0))) {
    return damaged("the archive is truncated");
  }
  TarBlock block;
  std::size_t got = 0;
  while ((got = archive_.read(block)) == block.size()) {
    if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) {
      return std::nullopt;  // the mark of the end
    }
    const std::optional<TarHeader> header = parse_tar_header(block);
    if (!header) {
      return damaged("the archive has a damaged header");
    }
    const auto size =
        static_cast<std::uint64_t>(header->is_extension() ? header->size : extension.size.value_or(header->size));
    if (header->is_extension()) {
      std::string content(size <= kMaxExtension ? size : 0, '\0');
      if (size > kMaxExtension || archive_.read(content) < size || !skip(padding(size)) ||
          !read_tar_extension(header->type, content, extension)) {
        return damaged("the archive has a damaged extended header");
      }
      continue;
    }
    const TarExtension own = std::exchange(extension, {});
    if (header->is_file()) {
      left_ = size + padding(size);
      return Member{std::string(trimmed_path(own.path ? *own.path : header->path)),
                    decompressed(std::make_unique<Window>(*this, size))};
    }
    if (!skip(size + padding(size))) {
      return damaged("the archive is truncated");
    }
  }
  return got == 0 && archive_.damage().empty() ? std::nullopt : damaged("the archive is truncated");
}

}  // namespace stoker::observe::trace
