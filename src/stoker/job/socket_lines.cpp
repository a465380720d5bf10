// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/socket_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"

namespace stoker::job {
namespace {

constexpr std::size_t kLongest = 4096;  // bytes of a line

// An address by way of the folder's descriptor, which stays open while this lives.
class Address {
 public:
  Address(const std::filesystem::path& folder, const std::string& name)
      : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    const std::string path = fmt::format("/proc/self/fd/{}/{}", folder_, name);
    address_.sun_family = AF_UNIX;
    usable_ = folder_ >= 0 && path.size() < sizeof(address_.sun_path);
    if (usable_) {
      std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
    }
  }
  ~Address() {
    if (folder_ >= 0) {
      ::close(folder_);
    }
  }
  Address(const Address&) = delete;
  Address& operator=(const Address&) = delete;

  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  [[nodiscard]] const char* path() const { return address_.sun_path; }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  int folder_;
  sockaddr_un address_{};
  bool usable_ = false;
};

int connect_to(const Address& address) {
  const int socket = address.usable() ? ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (socket >= 0 && ::connect(socket, address.get(), Address::kSize) != 0) {
    const int error = errno;
    ::close(socket);
    errno = error;
    return -1;
  }
  return socket;
}

// False after the time, and as soon as wake is readable. poll() passes over a descriptor of -1.
bool wait_readable(int socket, int wake, double seconds) {
  std::array<pollfd, 2> both = {{{socket, POLLIN, 0}, {wake, POLLIN, 0}}};
  return ::poll(both.data(), both.size(), static_cast<int>(1e3 * seconds)) > 0 && both[1].revents == 0;
}

}  // namespace

int connect_in(const std::filesystem::path& folder, const std::string& name) {
  return connect_to(Address(folder, name));
}

int listen_in(const std::filesystem::path& folder, const std::string& name) {
  const Address address(folder, name);
  if (!address.usable()) {
    return -1;
  }
  if (const int other = connect_to(address); other >= 0) {
    ::close(other);
    return -1;
  }
  struct stat found {};
  if (errno == ECONNREFUSED && ::lstat(address.path(), &found) == 0 && S_ISSOCK(found.st_mode)) {
    ::unlink(address.path());  // a process that was killed left it
  }
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return -1;
  }
  ::fchmod(socket, S_IRUSR | S_IWUSR);  // before bind(): the file never has wider permissions
  const bool bound = ::bind(socket, address.get(), Address::kSize) == 0;
  if (!bound || ::listen(socket, 4) != 0) {
    if (bound) {
      ::unlink(address.path());
    }
    ::close(socket);
    return -1;
  }
  return socket;
}

SocketLines::SocketLines(int socket, int wake) : socket_(socket), wake_(wake) {}
SocketLines::~SocketLines() { ::close(socket_); }

bool SocketLines::put(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t now = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && errno != EINTR) {
      return false;
    }
    sent += now < 0 ? 0 : static_cast<std::size_t>(now);
  }
  return true;
}

std::optional<std::string> SocketLines::get(double seconds) {
  const Stopwatch watch;
  for (;;) {
    if (const auto end = read_.find('\n'); end != read_.npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    const double left = seconds - watch.seconds();
    if (read_.size() > kLongest || left <= 0 || !wait_readable(socket_, wake_, left)) {
      return std::nullopt;
    }
    std::array<char, 512> bytes{};
    const ssize_t now = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (now == 0 || (now < 0 && errno != EINTR)) {
      return std::nullopt;
    }
    read_.append(bytes.data(), now < 0 ? 0 : static_cast<std::size_t>(now));
  }
}

bool SocketLines::closed() const {
  char byte = 0;
  const ssize_t seen = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace stoker::job
