// SPDX-License-Identifier: Apache-2.0
// A simulated device: a thread that copies late, with events and a copy stream. For tests of code that must keep memory
// until a copy is done. A stream is used by one thread that copies and one thread that uses the copies.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "stoker/base/bounded_queue.h"
#include "stoker/device/copy_stream.h"

namespace stoker::testing {

// Work of the simulated device, done in order, each piece some time after it was requested.
class LateDevice {
 public:
  LateDevice() : thread_([this] { run(); }) {}
  ~LateDevice() { work_.close(); }
  void add(std::function<void()> piece) { (void)work_.push(std::move(piece)); }

 private:
  void run() {
    while (auto piece = work_.pop()) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      (*piece)();
    }
  }
  BoundedQueue<std::function<void()>> work_{1000};
  std::jthread thread_;
};

class LateEvent final : public device::Event {
 public:
  explicit LateEvent(LateDevice& device) {
    device.add([done = done_] {
      *done = true;
      done->notify_all();
    });
  }
  void record() override {}
  void wait() const override { done_->wait(false); }
  bool ready() const override { return *done_; }
  double elapsed_ms(const device::Event&) const override { return 1; }

 private:
  std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

class LateStream : public device::CopyStream {
 public:
  at::Tensor copy(const at::Tensor& host) override {
    at::Tensor there = at::empty_like(host);
    // Captures only the address of host: the caller must keep host, as tests check. A device's allocator keeps there.
    device_.add([there, from = host.const_data_ptr()] { std::memcpy(there.mutable_data_ptr(), from, there.nbytes()); });
    return there;
  }
  at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) override {
    return hosts_.emplace_back(at::empty(sizes, type));  // kept, as torch keeps page-locked memory for copies
  }
  at::Tensor room(std::int64_t bytes) override { return at::empty({bytes}, at::kByte); }
  void copy(const at::Tensor& host, const at::Tensor& there) override {
    device_.add([there, from = host.const_data_ptr()] { std::memcpy(there.mutable_data_ptr(), from, there.nbytes()); });
  }
  std::unique_ptr<device::Event> mark(bool) override { return std::make_unique<LateEvent>(device_); }
  void await(device::Event& copied) override { copied.wait(); }
  void used_here(const at::Tensor&) override { ++used; }
  std::atomic<int> used = 0;

 private:
  std::vector<at::Tensor> hosts_;
  LateDevice device_;
};

}  // namespace stoker::testing
