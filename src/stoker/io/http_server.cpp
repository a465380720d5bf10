// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/http_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"

namespace stoker::io {
namespace {

constexpr std::string_view kWhere = "io.http_server";
constexpr int kPatience = 5;  // seconds without a byte from a client
constexpr int kMostHeaderBytes = 8192;
constexpr int kMostBodyBytes = 1024;  // a GET has none
constexpr int kMostClients = 16;
constexpr timeval kPause{0, 100'000};  // before clients are taken again, if there were too many

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* value) const {
    kFree(value);
  }
};
using EventBase = std::unique_ptr<event_base, Freed<event_base_free>>;
using Http = std::unique_ptr<evhttp, Freed<evhttp_free>>;
using OneEvent = std::unique_ptr<event, Freed<event_free>>;
using Uri = std::unique_ptr<evhttp_uri, Freed<evhttp_uri_free>>;

// A signal must reach the thread that expects it, and a client that has gone must not end the process (SIGPIPE).
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void reply(evhttp_request* request, void* answer) {
  const Uri uri(evhttp_uri_parse(evhttp_request_get_uri(request)));
  const char* const path = uri ? evhttp_uri_get_path(uri.get()) : nullptr;
  HttpPage page;
  try {
    page = (*static_cast<const HttpServer::Answer*>(answer))(path != nullptr ? path : "");
  } catch (...) {  // through C code it would end the process
    evhttp_send_reply(request, HTTP_INTERNAL, nullptr, nullptr);
    return;
  }
  if (page.type.empty()) {
    evhttp_send_reply(request, HTTP_NOTFOUND, nullptr, nullptr);
    return;
  }
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", page.type.c_str());
  evbuffer* const body = evhttp_request_get_output_buffer(request);
  const bool whole = evbuffer_add(body, page.text.data(), page.text.size()) == 0;
  evhttp_send_reply(request, whole ? HTTP_OK : HTTP_INTERNAL, nullptr, nullptr);
}

void silent(int, const char*) {}  // libevent would write warnings to stderr

}  // namespace

struct HttpServer::State {
  Answer answer;
  int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  EventBase base{event_base_new()};
  Http http{base ? evhttp_new(base.get()) : nullptr};
  OneEvent stopped, pause;
  evconnlistener* listener = nullptr;  // of http
  std::uint16_t port = 0;
  std::jthread thread;

  explicit State(Answer of) : answer(std::move(of)) {}
  ~State() {
    if (thread.joinable()) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(stop, &one, sizeof one);  // a counter that is not full
      thread.join();
    }
    stopped.reset();
    pause.reset();
    http.reset();
    base.reset();
    ::close(stop);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void listen(std::uint16_t wanted) {
    errno = 0;
    evhttp_bound_socket* const socket = evhttp_bind_socket_with_handle(http.get(), "127.0.0.1", wanted);
    if (socket == nullptr) {
      fail<IoError>(kWhere, "cannot listen on 127.0.0.1:{}: {}; choose another port, or 0 for a free one", wanted,
                    std::strerror(errno));
    }
    listener = evhttp_bound_socket_get_listener(socket);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    ::getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&bound), &size);
    port = ntohs(bound.sin_port);
  }

  // libevent 2.1 counts no clients, but events: a client that is connected has one to read or to write, with a limit of
  // time, which counts as another. others: events of ours that wait now.
  [[nodiscard]] int clients(int others) const {
    return (event_base_get_num_events(base.get(), EVENT_BASE_COUNT_ADDED) - others) / 2;
  }
  // libevent asks for the buffers of a client that it has accepted, before the client has events: it makes them itself.
  static bufferevent* accepted(event_base*, void* self) {
    auto& state = *static_cast<State*>(self);
    if (state.clients(/*others=*/2) + 1 >= kMostClients) {  // others: the listener and `stopped`
      evconnlistener_disable(state.listener);
      event_add(state.pause.get(), &kPause);
    }
    return nullptr;
  }
  static void look_again(evutil_socket_t, short, void* self) {
    auto& state = *static_cast<State*>(self);
    if (state.clients(/*others=*/1) >= kMostClients) {  // `stopped`
      event_add(state.pause.get(), &kPause);
    } else {
      evconnlistener_enable(state.listener);
    }
  }
};

HttpServer::HttpServer(std::uint16_t port, Answer answer) {
  event_set_log_callback(silent);
  state_ = std::make_unique<State>(std::move(answer));
  State& state = *state_;
  if (state.stop < 0 || !state.http) {
    fail<IoError>(kWhere, "the system gives no descriptors for a server: {}", std::strerror(errno));
  }
  evhttp_set_allowed_methods(state.http.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_timeout(state.http.get(), kPatience);
  evhttp_set_max_headers_size(state.http.get(), kMostHeaderBytes);
  evhttp_set_max_body_size(state.http.get(), kMostBodyBytes);
  evhttp_set_gencb(state.http.get(), reply, &state.answer);
  evhttp_set_bevcb(state.http.get(), State::accepted, &state);
  state.listen(port);
  const auto leave = [](evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); };
  state.stopped.reset(event_new(state.base.get(), state.stop, EV_READ, leave, state.base.get()));
  state.pause.reset(evtimer_new(state.base.get(), State::look_again, &state));
  if (!state.stopped || !state.pause || event_add(state.stopped.get(), nullptr) != 0) {
    throw std::bad_alloc();
  }
  state.thread = start_thread(kWhere, "answers requests for metrics", [base = state.base.get()] {
    block_signals();
    event_base_dispatch(base);
  });
}

HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const { return state_->port; }

}  // namespace stoker::io
