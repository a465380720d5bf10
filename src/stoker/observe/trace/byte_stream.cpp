// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::observe::trace {
namespace {

constexpr std::size_t kInputBytes = std::size_t{1} << 16;  // of compressed data at a time

class FileStream final : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& path) : name_(printable(path.native())) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) {
      fail<DataError>("observe.trace", "{}: cannot be opened: {}", name_, std::strerror(errno));
    }
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      ::close(descriptor_);
      fail<DataError>("observe.trace", "{}: is not a regular file; give a trace or a folder with one trace per rank",
                      name_);
    }
  }
  ~FileStream() override { ::close(descriptor_); }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  std::size_t read(std::span<char> buffer) override {
    std::size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t got = ::read(descriptor_, buffer.data() + done, buffer.size() - done);
      if (got < 0 && errno != EINTR) {
        fail<DataError>("observe.trace", "{}: cannot be read: {}", name_, std::strerror(errno));
      }
      if (got == 0) {
        break;
      }
      done += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return done;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
};

// gzip (RFC 1952), also several members one after the other, as `cat a.gz b.gz` makes.
class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<ByteStream> source) : source_(std::move(source)), input_(kInputBytes) {
    if (::inflateInit2(&state_, 15 + 16) != Z_OK) {  // the largest window, gzip's header
      throw std::bad_alloc();
    }
  }
  ~GzipStream() override { ::inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(std::span<char> buffer) override {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    std::size_t done = 0;
    while (done < buffer.size() && !ended_) {
      if (state_.avail_in == 0) {
        refill();
      }
      state_.next_out = reinterpret_cast<Bytef*>(buffer.data() + done);
      state_.avail_out = static_cast<uInt>(std::min(buffer.size() - done, kMost));
      const int status = ::inflate(&state_, Z_NO_FLUSH);
      done = static_cast<std::size_t>(reinterpret_cast<char*>(state_.next_out) - buffer.data());
      look_at(status);
    }
    return done;
  }
  [[nodiscard]] std::string damage() const override { return damage_.empty() ? source_->damage() : damage_; }

 private:
  void refill() {
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(source_->read(input_));
  }
  void look_at(int status) {
    if (status == Z_STREAM_END) {
      if (state_.avail_in == 0) {
        refill();
      }
      // What follows a member is another one, or padding that gzip ignores, too.
      ended_ = state_.avail_in == 0 || *state_.next_in != 0x1F || ::inflateReset(&state_) != Z_OK;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status == Z_BUF_ERROR && state_.avail_in == 0) {
      end("the compressed data is truncated");
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      end(fmt::format("the compressed data is damaged ({})", state_.msg != nullptr ? state_.msg : "no reason given"));
    }
  }
  void end(std::string why) {
    ended_ = true;
    damage_ = std::move(why);
  }

  std::unique_ptr<ByteStream> source_;
  std::vector<char> input_;
  z_stream state_{};
  bool ended_ = false;
  std::string damage_;
};

class PutBack final : public ByteStream {
 public:
  PutBack(std::string head, std::unique_ptr<ByteStream> rest) : head_(std::move(head)), rest_(std::move(rest)) {}
  std::size_t read(std::span<char> buffer) override {
    const std::size_t first = std::min(buffer.size(), head_.size() - at_);
    std::memcpy(buffer.data(), head_.data() + at_, first);
    at_ += first;
    return first + (first < buffer.size() ? rest_->read(buffer.subspan(first)) : 0);
  }
  [[nodiscard]] std::string damage() const override { return rest_->damage(); }

 private:
  std::string head_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteStream> rest_;
};

}  // namespace

std::unique_ptr<ByteStream> put_back(std::string head, std::unique_ptr<ByteStream> rest) {
  return std::make_unique<PutBack>(std::move(head), std::move(rest));
}

std::unique_ptr<ByteStream> decompressed(std::unique_ptr<ByteStream> rest) {
  std::array<char, 2> magic{};
  const std::size_t got = rest->read(magic);
  auto whole = put_back(std::string(magic.data(), got), std::move(rest));
  if (got == 2 && magic[0] == '\x1F' && magic[1] == '\x8B') {
    return std::make_unique<GzipStream>(std::move(whole));
  }
  return whole;
}

std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path) {
  return decompressed(std::make_unique<FileStream>(path));
}

}  // namespace stoker::observe::trace
