// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/messages.h"

#include <limits>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

// Tags wrap around long after the messages with the same tag have arrived.
int next_tag(int& count) {
  const int tag = count;
  count = count == std::numeric_limits<int>::max() ? 0 : count + 1;
  return tag;
}

void check_contiguous(const at::Tensor& tensor) {
  if (!tensor.is_contiguous()) {
    fail<Error>("parallel.ranks", "messages are contiguous tensors; give a flat buffer");
  }
}

// Messages that nobody waits for, after an error: Gloo's thread may still use their memory.
void abandon(StartedMessage message) {
  static std::mutex mutex;
  static auto* const messages = new std::vector<StartedMessage>();  // never freed: Gloo's threads may outlive it
  const std::lock_guard lock(mutex);
  messages->push_back(std::move(message));
}

}  // namespace

Messages::Messages(c10d::ProcessGroupGloo& gloo, int ranks)
    : gloo_(gloo), sent_(static_cast<std::size_t>(ranks)), received_(static_cast<std::size_t>(ranks)) {}

StartedMessage Messages::start_send(const at::Tensor& tensor, int to) {
  check_contiguous(tensor);
  std::vector<at::Tensor> tensors{tensor};
  return {gloo_.send(tensors, to, next_tag(sent_[static_cast<std::size_t>(to)])), tensor};
}

StartedMessage Messages::start_receive(const at::Tensor& tensor, int from) {
  check_contiguous(tensor);
  std::vector<at::Tensor> tensors{tensor};
  return {gloo_.recv(tensors, from, next_tag(received_[static_cast<std::size_t>(from)])), tensor};
}

Message::Message(StartedMessage message, std::chrono::milliseconds timeout, Around around)
    : message_(std::move(message)), timeout_(timeout), around_(std::move(around)) {}

Message::~Message() {
  if (message_.work) {
    abandon(std::move(message_));
  }
}

void Message::wait() {
  StartedMessage message = std::exchange(message_, {});
  try {
    // Without a timeout of its own it would take the one of the connections, which is that of the meeting.
    around_(static_cast<std::int64_t>(message.tensor.nbytes()), [&] { message.work->wait(timeout_); });
  } catch (...) {
    abandon(std::move(message));
    throw;
  }
}

}  // namespace stoker::parallel
