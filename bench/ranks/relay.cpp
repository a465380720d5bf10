// SPDX-License-Identifier: Apache-2.0
// A cable between two network devices that this program makes: what is sent into one comes out of the other after a
// fixed time. Used by overlap.py, which moves each device into a network namespace of its own and limits its rate, on
// kernels without netem. Linux only; needs /dev/net/tun and the right to administer networks. One thread.
//
//     relay DEVICE DEVICE MICROSECONDS
//
// Prints "ready" when the devices exist. Ends when its standard input is closed; the devices go with it.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/error.h"

namespace stoker::bench {
namespace {

constexpr std::size_t kLargest = 65'536;    // bytes of a packet
constexpr std::size_t kMostWaiting = 8192;  // packets: more are dropped, as by a full switch
constexpr int kAtOnce = 64;                 // packets that are read before due ones are written

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

int open_device(const char* name) {
  const int file = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (file < 0 || ::ioctl(file, TUNSETIFF, &request) < 0) {
    fail<IoError>("bench.relay", "{}: a tun device cannot be made: {}", name, std::strerror(errno));
  }
  return file;
}

struct Packet {
  std::int64_t due_ns;
  std::vector<char> bytes;
};

// One direction.
class Way {
 public:
  Way(int from, int to, std::int64_t delay_ns) : from_(from), to_(to), delay_ns_(delay_ns) {}

  void take() {
    for (int i = 0; i < kAtOnce; ++i) {
      const ssize_t size = ::read(from_, buffer_.data(), buffer_.size());
      if (size <= 0) {
        return;
      }
      if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({now_ns() + delay_ns_, {buffer_.data(), buffer_.data() + size}});
      }
    }
  }

  void give() {
    while (!waiting_.empty() && waiting_.front().due_ns <= now_ns()) {
      const std::vector<char>& bytes = waiting_.front().bytes;
      if (::write(to_, bytes.data(), bytes.size()) < 0 && errno == EAGAIN) {
        return;  // its queue is full
      }
      waiting_.pop_front();  // also what the device refuses, while it is down
    }
  }

  // When the next packet is due; 0: none waits.
  [[nodiscard]] std::int64_t next_ns() const { return waiting_.empty() ? 0 : waiting_.front().due_ns; }

 private:
  int from_, to_;
  std::int64_t delay_ns_;
  std::array<char, kLargest> buffer_;
  std::deque<Packet> waiting_;
};

// Wakes poll() at a moment; 0: never.
void set_timer(int timer, std::int64_t at_ns) {
  itimerspec when{};
  when.it_value = {.tv_sec = at_ns / 1'000'000'000, .tv_nsec = at_ns % 1'000'000'000};
  ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

void relay(int one, int other, std::int64_t delay_ns) {
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  Way there(one, other, delay_ns), back(other, one, delay_ns);
  std::array<pollfd, 4> files{{{one, POLLIN, 0}, {other, POLLIN, 0}, {timer, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  for (;;) {
    const std::int64_t first = there.next_ns(), second = back.next_ns();
    set_timer(timer, first == 0 ? second : second == 0 ? first : std::min(first, second));
    if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) {
      fail<IoError>("bench.relay", "poll failed: {}", std::strerror(errno));
    }
    if (files[3].revents != 0) {
      return;
    }
    there.take();
    back.take();
    there.give();
    back.give();
  }
}

int run(int count, char** words) {
  if (count != 4) {
    fail<ConfigError>("bench.relay", "give two names of devices and the delay in microseconds");
  }
  const int one = open_device(words[1]), other = open_device(words[2]);
  fmt::print("ready\n");
  std::fflush(stdout);
  relay(one, other, 1000 * std::stoll(words[3]));
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int count, char** words) { return stoker::bench::bench_main("relay", stoker::bench::run, count, words); }
