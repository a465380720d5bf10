// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/local_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.local_address";

// The own end of a datagram socket that is connected to address; empty: no network leads there.
std::string own_end(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return "";
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  auto* const where = reinterpret_cast<sockaddr*>(&own);
  const bool found = ::connect(socket, address.ai_addr, address.ai_addrlen) == 0 &&
                     ::getsockname(socket, where, &size) == 0 &&
                     ::getnameinfo(where, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  ::close(socket);
  return found ? text.data() : "";
}

}  // namespace

std::string local_address(const std::string& host) {
  constexpr const char* kDiscard = "9";  // any port will do
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), kDiscard, &hints, &list); error != 0) {
    fail<ConfigError>(kWhere, "{}: the host of rank 0 is unknown here: {}; check MASTER_ADDR", printable(host),
                      ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, ::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (const std::string own = own_end(*each); !own.empty()) {
      return own;
    }
  }
  fail<ConfigError>(kWhere, "{}: no network of this machine leads to the host of rank 0: {}", printable(host),
                    std::strerror(errno));
}

}  // namespace stoker::parallel
