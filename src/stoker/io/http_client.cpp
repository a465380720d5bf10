// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/http_client.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <new>

#include "stoker/base/error.h"

namespace stoker::io {
namespace {

constexpr std::size_t kMostBody = 4 << 20;  // bytes of a reply

// The functions of libcurl that we call.
struct Curl {
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) info = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_strerror) reason = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_list = nullptr;
};

Curl load_curl() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) {
      library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);  // for good: it may have threads
    }
  }
  if (library == nullptr) {
    fail<IoError>("io.http_client", "libcurl is not installed (Debian's package libcurl4): {}", ::dlerror());
  }
  Curl curl;
  decltype(&curl_global_init) begin = nullptr;
  bool whole = true;
  const auto find = [&]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    whole = whole && function != nullptr;
  };
  find(begin, "curl_global_init");
  find(curl.init, "curl_easy_init");
  find(curl.set, "curl_easy_setopt");
  find(curl.perform, "curl_easy_perform");
  find(curl.info, "curl_easy_getinfo");
  find(curl.cleanup, "curl_easy_cleanup");
  find(curl.reason, "curl_easy_strerror");
  find(curl.append, "curl_slist_append");
  find(curl.free_list, "curl_slist_free_all");
  if (!whole || begin(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    fail<IoError>("io.http_client", "libcurl cannot be used: it lacks functions or does not start");
  }
  return curl;
}

const Curl& curl_library() {
  static const Curl curl = load_curl();
  return curl;
}

std::size_t take(const char* data, std::size_t size, std::size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  try {
    text.append(data, std::min(size * count, kMostBody - text.size()));
  } catch (...) {  // through C code it would end the process; any other number is an error for libcurl
    return 0;
  }
  return size * count;
}

// A server that goes away must not end the process: OpenSSL writes without MSG_NOSIGNAL.
void block_sigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace

struct HttpClient::State {
  const Curl& curl = curl_library();
  CURL* handle = curl.init();
  std::array<char, CURL_ERROR_SIZE> reason{};

  State() {
    if (handle == nullptr) {
      throw std::bad_alloc();
    }
  }
  ~State() { curl.cleanup(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

HttpClient::HttpClient() : state_(std::make_unique<State>()) {}
HttpClient::~HttpClient() = default;

HttpReply HttpClient::send(const HttpRequest& request, std::chrono::milliseconds patience) {
  block_sigpipe();
  const Curl& curl = state_->curl;
  CURL* const handle = state_->handle;
  HttpReply reply;
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers) {
    headers = curl.append(headers, header.c_str());
  }
  state_->reason[0] = '\0';
  curl.set(handle, CURLOPT_ERRORBUFFER, state_->reason.data());
  curl.set(handle, CURLOPT_NOSIGNAL, 1L);  // other threads have the signals
  curl.set(handle, CURLOPT_URL, request.url.c_str());
  curl.set(handle, CURLOPT_HTTPHEADER, headers);
  curl.set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(patience.count()));
  curl.set(handle, CURLOPT_WRITEFUNCTION, &take);
  curl.set(handle, CURLOPT_WRITEDATA, &reply.body);
  if (request.method == "POST") {
    curl.set(handle, CURLOPT_POST, 1L);
    curl.set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl.set(handle, CURLOPT_POSTFIELDS, request.body.data());
  } else {
    curl.set(handle, CURLOPT_HTTPGET, 1L);
  }
  const CURLcode code = curl.perform(handle);
  if (code == CURLE_OK) {
    long status = 0;
    curl.info(handle, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
  } else {
    reply.failure = state_->reason[0] != '\0' ? state_->reason.data() : curl.reason(code);
  }
  curl.set(handle, CURLOPT_HTTPHEADER, nullptr);
  curl.free_list(headers);
  return reply;
}

}  // namespace stoker::io
