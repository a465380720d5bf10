// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/host_sampler.h"

#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace stoker::observe::profile {
namespace {

// What the handler writes to. It allocates nothing and takes no lock.
struct Samples {
  explicit Samples(std::size_t most) : all(most) {}
  std::vector<HostSample> all;
  std::atomic<std::size_t> taken = 0;  // may exceed the size
};
std::atomic<Samples*> g_samples = nullptr;
std::atomic<int> g_inside = 0;  // handlers that run now

// The instruction pointer, by the names of x86-64 and of ARM; 0 on another processor.
template <typename Registers>
std::uintptr_t instruction_of(const Registers& registers) {
  if constexpr (requires { registers.gregs; }) {
    constexpr std::size_t kRip = 16;  // REG_RIP
    return static_cast<std::uintptr_t>(registers.gregs[kRip]);
  } else if constexpr (requires { registers.pc; }) {
    return static_cast<std::uintptr_t>(registers.pc);
  } else {
    return 0;
  }
}

void take_sample(int, siginfo_t*, void* context) {
  const int error = errno;
  g_inside.fetch_add(1);
  if (Samples* const samples = g_samples.load()) {
    const std::size_t at = samples->taken.fetch_add(1);
    if (at < samples->all.size()) {
      samples->all[at] = {static_cast<std::int32_t>(::syscall(SYS_gettid)),
                          instruction_of(static_cast<const ucontext_t*>(context)->uc_mcontext)};
    }
  }
  g_inside.fetch_sub(1);
  errno = error;
}

// The handler stays: a signal may still be on its way when the timers are gone, and its default would end the process.
bool handler_installed() {
  struct sigaction before = {};
  struct sigaction ours = {};
  if (::sigaction(SIGPROF, nullptr, &before) != 0) {
    return false;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == &take_sample) {
    return true;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) {
    return false;  // another profiler's
  }
  ours.sa_sigaction = &take_sample;
  ours.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigemptyset(&ours.sa_mask);
  return ::sigaction(SIGPROF, &ours, nullptr) == 0;
}

std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task", error)) {
    threads.push_back(static_cast<pid_t>(std::strtol(each.path().filename().c_str(), nullptr, 10)));
  }
  return threads;
}

// The kernel's clock of a thread's CPU time; pthread_getcpuclockid() makes it of a pthread_t.
clockid_t cpu_clock_of(pid_t thread) {
  constexpr clockid_t kOfThread = 6;
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3U) | kOfThread;
}

}  // namespace

struct HostSampler::Timers {
  explicit Timers(std::size_t most) : samples(most) {}
  Samples samples;
  std::vector<timer_t> all;

  void start() {
    g_samples = &samples;
    const std::vector<pid_t> threads = threads_of_process();
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const timespec every{0, static_cast<long>(1e9 * HostSampler::every(std::min(threads.size(), cores)))};
    for (const pid_t thread : threads) {
      sigevent event{};
      event.sigev_notify = SIGEV_THREAD_ID;
      event.sigev_signo = SIGPROF;
      event._sigev_un._tid = thread;
      timer_t timer{};
      if (::timer_create(cpu_clock_of(thread), &event, &timer) != 0) {
        continue;  // the thread has ended
      }
      const itimerspec both{every, every};
      ::timer_settime(timer, 0, &both, nullptr);
      all.push_back(timer);
    }
  }
  void stop() {
    for (const timer_t timer : all) {
      ::timer_delete(timer);
    }
    all.clear();
    if (g_samples.exchange(nullptr) != nullptr) {
      while (g_inside.load() > 0) {
        std::this_thread::yield();
      }
    }
  }
};

HostSampler::HostSampler(std::size_t most) : timers_(std::make_unique<Timers>(most)) {
  if (g_samples.load() != nullptr || !handler_installed()) {
    missing_ = "another profiler uses SIGPROF, so host code was not sampled";
  } else {
    timers_->start();
    if (timers_->all.empty()) {
      timers_->stop();
      missing_ = "the system gives no timers of CPU time, so host code was not sampled";
    }
  }
}

HostSampler::~HostSampler() {
  if (missing_.empty()) {
    timers_->stop();
  }
}

std::vector<HostSample> HostSampler::stop() {
  if (!missing_.empty()) {
    return {};
  }
  timers_->stop();
  std::vector<HostSample> samples = std::move(timers_->samples.all);
  const std::size_t taken = timers_->samples.taken.load();
  full_ = taken > samples.size();
  samples.resize(std::min(samples.size(), taken));
  return samples;
}

}  // namespace stoker::observe::profile
