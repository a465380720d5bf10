// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "stoker/base/error.h"
#include "stoker/base/utf8.h"

namespace stoker {
namespace {

// Closes a descriptor on every path.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

std::string reason() { return std::strerror(errno); }

// A kernel without memory says nothing about the file.
void check_memory() {
  if (errno == ENOMEM) {
    throw std::bad_alloc();
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = code_point_at(text, i).bytes;
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || (length == 1 && (byte < 0x20 || byte == 0x7F))) {
      result += fmt::format("\\x{:02x}", byte);
      ++i;
    } else {
      result += text.substr(i, length);
      i += length;
    }
  }
  return result;
}

InputFile::InputFile(const std::filesystem::path& path, std::size_t limit) : path_(path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO must not block us here
  if (file.get() < 0) {
    check_memory();
    fail<DataError>("base.file", "{}: cannot be opened: {}", printable(path.native()), reason());
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    fail<DataError>("base.file", "{}: is not a regular file", printable(path.native()));
  }
  size_ = static_cast<std::size_t>(facts.st_size);
  if (size_ > limit) {
    fail<DataError>("base.file", "{}: has {} bytes, the limit is {}", printable(path.native()), size_, limit);
  }
  descriptor_ = file.release();
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void InputFile::read(std::vector<std::byte>& buffer) const {
  buffer.resize(size_);
  for (std::size_t done = 0; done < buffer.size();) {
    const ssize_t got = ::read(descriptor_, buffer.data() + done, buffer.size() - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      check_memory();
      fail<DataError>("base.file", "{}: cannot be read: {}", printable(path_.native()), reason());
    }
    if (got == 0) {  // it shrank while we read
      buffer.resize(done);
      break;
    }
    done += static_cast<std::size_t>(got);
  }
}

void read_file(const std::filesystem::path& path, std::vector<std::byte>& buffer, std::size_t limit) {
  InputFile(path, limit).read(buffer);
}

std::string read_text(const std::filesystem::path& path, std::size_t limit) {
  std::vector<std::byte> buffer;
  read_file(path, buffer, limit);
  return std::string(as_text(buffer));
}

void FileWriter::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      fail<IoError>("base.file", "{}: cannot be written after {} bytes: {}", printable(path_.native()), written_,
                    reason());
    }
    written_ += static_cast<std::size_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor handle(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() < 0 || ::fsync(handle.get()) != 0) {
    fail<IoError>("base.file", "{}: folder cannot be synced: {}", printable(folder.native()), reason());
  }
}

namespace {

// Whether path exists and is something that a rename would destroy: a device, a pipe, a socket.
bool is_stream(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void write_stream(const std::filesystem::path& path, const std::function<void(FileWriter&)>& fill) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) {
    fail<IoError>("base.file", "{}: cannot be opened: {}", printable(path.native()), reason());
  }
  FileWriter writer(file.get(), path);
  fill(writer);
}

// The file that a symbolic link points to, so that the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  return error || !std::filesystem::is_symlink(path, error) ? path : target;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& name, const std::function<void(FileWriter&)>& fill) {
  if (is_stream(name)) {
    return write_stream(name, fill);
  }
  const std::filesystem::path path = behind_links(name);
  std::string temporary = path.native() + ".tmp-XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) {
    fail<IoError>("base.file", "{}: cannot be created: {}", printable(path.native()), reason());
  }
  try {
    FileWriter writer(file.get(), path);
    fill(writer);
    if (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0 || ::close(file.release()) != 0) {
      fail<IoError>("base.file", "{}: cannot be flushed: {}", printable(path.native()), reason());
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      fail<IoError>("base.file", "{}: cannot be renamed into place: {}", printable(path.native()), reason());
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, [&](FileWriter& writer) { writer.write(as_bytes(text)); });
}

}  // namespace stoker
