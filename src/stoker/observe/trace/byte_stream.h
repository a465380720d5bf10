// SPDX-License-Identifier: Apache-2.0
// Bytes in order from a file, decompressed if the file is gzip; and the members of a tar archive, one after the other.
// A trace is read once from its front, so its size on disk or in memory does not matter. Used by the reader of traces.
// For one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace stoker::observe::trace {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of buffer; returns the number of bytes, less than the size only at the end. What is damaged ends
  // the stream early: see damage().
  virtual std::size_t read(std::span<char> buffer) = 0;
  // Why the stream ended early: "the compressed data is truncated"; empty if it did not.
  [[nodiscard]] virtual std::string damage() const { return {}; }
};

// The bytes of a file; decompressed if it begins like gzip. DataError that names the file if it cannot be opened or is
// no regular file. A read error throws DataError, too.
[[nodiscard]] std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path);

// The regular files of a tar archive, in order. Each member's stream must be used before the next is asked for.
class TarMembers {
 public:
  struct Member {
    std::string path;
    std::unique_ptr<ByteStream> bytes;  // decompressed if the member is gzip
  };
  // Whether a stream begins with the header of a tar archive: the first 512 bytes.
  [[nodiscard]] static bool begins(std::span<const char> head);

  explicit TarMembers(ByteStream& archive) : archive_(archive) {}
  // Empty at the end of the archive, or where it is damaged.
  [[nodiscard]] std::optional<Member> next();
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  class Window;  // the bytes of one member
  bool skip(std::uint64_t bytes);

  ByteStream& archive_;
  std::string damage_;
  std::uint64_t left_ = 0;  // bytes of the current member and its padding that nobody has read
};

// `head`, then the rest of a stream: for who had to look at the first bytes.
[[nodiscard]] std::unique_ptr<ByteStream> put_back(std::string head, std::unique_ptr<ByteStream> rest);
// Decompresses rest if it begins like gzip.
[[nodiscard]] std::unique_ptr<ByteStream> decompressed(std::unique_ptr<ByteStream> rest);

}  // namespace stoker::observe::trace
