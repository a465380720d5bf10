// SPDX-License-Identifier: Apache-2.0
// Lines of text over a Unix socket in a folder. The socket is reached through the folder's descriptor, since a socket's
// path may only have 107 bytes. Used by both ends of run_socket.h. For one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stoker::job {

// Listens at folder/name, for this user only; -1: it cannot, or a process that lives listens there.
[[nodiscard]] int listen_in(const std::filesystem::path& folder, const std::string& name);
// -1: nobody listens.
[[nodiscard]] int connect_in(const std::filesystem::path& folder, const std::string& name);

class SocketLines {
 public:
  // Takes the socket. wake: a descriptor that ends get() as soon as it is readable; -1: none.
  explicit SocketLines(int socket, int wake = -1);
  ~SocketLines();
  SocketLines(const SocketLines&) = delete;
  SocketLines& operator=(const SocketLines&) = delete;

  // False if the other end is gone, or does not read what it was sent: it never waits.
  bool put(const std::string& line);
  // The next line; empty if the other end is gone, sends more than 4 KiB without a line's end, or stays silent, and
  // after a wake.
  [[nodiscard]] std::optional<std::string> get(double seconds);
  // Whether the other end has closed.
  [[nodiscard]] bool closed() const;

 private:
  int socket_, wake_;
  std::string read_;
};

}  // namespace stoker::job
