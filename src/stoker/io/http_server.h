// SPDX-License-Identifier: Apache-2.0
// Answers GET requests of programs on this machine, on a thread of its own; hides libevent. Used by the Prometheus
// sink. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace stoker::io {

struct HttpPage {
  std::string type;  // of the content: "text/plain; charset=utf-8"
  std::string text;
};

class HttpServer {
 public:
  // path -> page, called on the server's thread; a page without a type: there is none (404).
  using Answer = std::function<HttpPage(const std::string& path)>;

  // Listens on 127.0.0.1, nowhere else. port: 0 for a free one. IoError if the port is taken or not allowed. A client
  // that is silent for five seconds is cut off. At most 16 are connected, others wait in the kernel's queue: whoever
  // may connect cannot use up the descriptors of this process.
  HttpServer(std::uint16_t port, Answer answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
