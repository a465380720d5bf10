// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a Gloo group, which go on beside other work. Used by ProcessGroup; one thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stoker/core/communicator.h"

namespace c10d {
class ProcessGroupGloo;
class Work;
}  // namespace c10d

namespace stoker::parallel {

// A message on its way: it holds the tensor that Gloo's thread reads or writes.
struct StartedMessage {
  c10::intrusive_ptr<c10d::Work> work;
  at::Tensor tensor;
};

class Messages {
 public:
  // gloo outlives it.
  Messages(c10d::ProcessGroupGloo& gloo, int ranks);

  // tensor: a contiguous one, else Error.
  [[nodiscard]] StartedMessage start_send(const at::Tensor& tensor, int to);
  [[nodiscard]] StartedMessage start_receive(const at::Tensor& tensor, int from);

 private:
  c10d::ProcessGroupGloo& gloo_;
  std::vector<int> sent_, received_;  // messages, by rank: both sides count alike, so their tags agree
};

class Message final : public core::Communicator::Pending {
 public:
  // timeout: of wait(). around: runs the wait; throws what an error of torch means.
  using Around = std::function<void(std::int64_t bytes, const std::function<void()>& wait)>;
  Message(StartedMessage message, std::chrono::milliseconds timeout, Around around);
  // Does not wait: after an error, the other side may never come. Until it does, the message stays.
  ~Message() override;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  void wait() override;

 private:
  StartedMessage message_;
  std::chrono::milliseconds timeout_;
  Around around_;
};

}  // namespace stoker::parallel
