// SPDX-License-Identifier: Apache-2.0
// Sends HTTP requests with libcurl, which is loaded when it is first needed, so that programs start without it. Used by
// the MLflow sink. One thread per client.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace stoker::io {

struct HttpRequest {
  std::string method = "GET";        // or "POST"
  std::string url;                   // http or https
  std::vector<std::string> headers;  // "Content-Type: application/json"
  std::string body;
};

struct HttpReply {
  int status = 0;       // 0: no reply
  std::string body;     // its first 4 MiB
  std::string failure;  // why there is no reply, for people
};

class HttpClient {
 public:
  // IoError if the system has no libcurl, with its name in Debian.
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Waits for the reply, at most this long. Keeps the connection for the next request. Uses the proxies of http_proxy,
  // https_proxy and no_proxy. Never throws for a server.
  [[nodiscard]] HttpReply send(const HttpRequest& request, std::chrono::milliseconds patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
