// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/thread_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>

#include "stoker/base/fmt.h"

namespace stoker::parallel {
namespace {

constexpr int kMostCalls = 100;
constexpr int kOwnCalls = 2;  // the handler, and the kernel's return from it
std::array<void*, kMostCalls> calls;
int number_of_calls = 0;
sem_t written;

int signal_number() { return SIGRTMIN + 6; }

// backtrace() allocates when it is called first, which stack_of() has done before.
void on_signal(int) {
  const int error = errno;
  number_of_calls = ::backtrace(calls.data(), kMostCalls);
  ::sem_post(&written);
  errno = error;
}

void listen() {
  ::sem_init(&written, 0, 0);
  static_cast<void>(::backtrace(calls.data(), 1));
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal_number(), &action, nullptr);
}

std::string name_of(void* call) {
  Dl_info info{};
  if (::dladdr(call, &info) == 0) {
    return fmt::format("{}", call);
  }
  const std::string file = info.dli_fname != nullptr ? info.dli_fname : "";
  const std::string short_file = file.substr(file.rfind('/') + 1);
  if (info.dli_sname == nullptr) {
    return fmt::format("{} +{:#x}", short_file,
                       reinterpret_cast<std::uintptr_t>(call) - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                         &std::free);
  return fmt::format("{}  [{}]", status == 0 ? name.get() : info.dli_sname, short_file);
}

}  // namespace

std::string stack_of(pthread_t thread) {
  static std::mutex one_at_a_time;
  static std::once_flag once;
  const std::lock_guard lock(one_at_a_time);
  std::call_once(once, listen);
  while (::sem_trywait(&written) == 0) {  // an answer that came too late
  }
  if (::pthread_kill(thread, signal_number()) != 0) {
    return "";
  }
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  while (::sem_timedwait(&written, &until) != 0) {
    if (errno != EINTR) {
      return "";
    }
  }
  std::string text;
  for (int i = kOwnCalls; i < number_of_calls; ++i) {
    text += name_of(calls[static_cast<std::size_t>(i)]) + "\n";
  }
  return text;
}

}  // namespace stoker::parallel
