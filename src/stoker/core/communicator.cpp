// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/error_kind.h"
#include "stoker/base/fmt.h"

namespace stoker::core {

std::unique_ptr<Communicator::Pending> Communicator::start_send(const at::Tensor&, int to) {
  fail<Error>("core.ranks", "rank {} cannot send to rank {}: this group has no messages", rank(), to);
}

std::unique_ptr<Communicator::Pending> Communicator::start_receive(at::Tensor&, int from) {
  fail<Error>("core.ranks", "rank {} cannot receive from rank {}: this group has no messages", rank(), from);
}

void Communicator::send(const at::Tensor& tensor, int to) {
  if (const auto pending = start_send(tensor, to)) {
    pending->wait();
  }
}

void Communicator::receive(at::Tensor& tensor, int from) {
  if (const auto pending = start_receive(tensor, from)) {
    pending->wait();
  }
}

std::unique_ptr<Communicator> Communicator::split(int) {
  fail<Error>("core.ranks", "rank {} cannot join a part of this group: it has none", rank());
}

void any_rank(Communicator& ranks, std::span<bool> flags) {
  if (ranks.size() == 1) {
    return;
  }
  at::Tensor all = at::zeros({static_cast<std::int64_t>(flags.size())}, at::kInt);
  std::ranges::copy(flags, all.mutable_data_ptr<std::int32_t>());
  ranks.all_reduce_max(all);
  std::transform(all.const_data_ptr<std::int32_t>(), all.const_data_ptr<std::int32_t>() + flags.size(), flags.begin(),
                 [](std::int32_t flag) { return flag != 0; });
}

std::unique_ptr<Communicator::Pending> Communicator::start_exchange(const at::Tensor& tensor, at::Tensor& all) {
  const at::Tensor rows = at::stack(exchange(tensor.flatten()));
  all.defined() ? all.copy_(rows) : (all = rows);
  return nullptr;
}

namespace {

// The text of one rank.
std::string text_of(Communicator& ranks, int from, std::string text) {
  if (ranks.size() == 1) {
    return text;
  }
  at::Tensor size = at::zeros({1}, at::kLong);
  *size.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  ranks.broadcast(size, from);
  text.resize(static_cast<std::size_t>(*size.const_data_ptr<std::int64_t>()));
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, bytes.mutable_data_ptr<std::uint8_t>());
  ranks.broadcast(bytes, from);
  std::copy_n(bytes.const_data_ptr<std::uint8_t>(), text.size(), text.begin());
  return text;
}

// Throws if a rank has an error: its own one there, elsewhere one of the same kind with its message.
void fail_together(Communicator& ranks, const std::exception_ptr& error) {
  const auto storage = std::make_unique<bool[]>(static_cast<std::size_t>(ranks.size()));  // all false
  const std::span<bool> failed(storage.get(), static_cast<std::size_t>(ranks.size()));
  failed[static_cast<std::size_t>(ranks.rank())] = error != nullptr;
  any_rank(ranks, failed);
  const auto first = std::ranges::find(failed, true);
  if (first == failed.end()) {
    return;
  }
  std::string kind, reason;
  if (error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& own) {
      kind = error_kind(own);
      reason = own.what();
    } catch (...) {
      reason = "an unknown error";
    }
  }
  const int from = static_cast<int>(first - failed.begin());
  kind = text_of(ranks, from, std::move(kind));
  reason = text_of(ranks, from, std::move(reason));
  if (error) {
    std::rethrow_exception(error);
  }
  throw_error_of(kind, "core.ranks", fmt::format("rank {} failed: {}", from, reason));
}

}  // namespace

void together(Communicator& ranks, const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  fail_together(ranks, error);
}

std::string text_of_first_rank(Communicator& ranks, std::string text) { return text_of(ranks, 0, std::move(text)); }

std::vector<std::string> texts_of_ranks(Communicator& ranks, const std::string& text) {
  at::Tensor size = at::zeros({1}, at::kLong);
  *size.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  const std::vector<at::Tensor> sizes = ranks.all_gather(size);
  std::int64_t longest = 1;
  for (const at::Tensor& each : sizes) {
    longest = std::max(longest, *each.const_data_ptr<std::int64_t>());
  }
  at::Tensor bytes = at::zeros({longest}, at::kByte);
  std::ranges::copy(text, bytes.mutable_data_ptr<std::uint8_t>());
  const std::vector<at::Tensor> all = ranks.all_gather(bytes);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto own = static_cast<std::size_t>(*sizes[rank].const_data_ptr<std::int64_t>());
    texts.emplace_back(reinterpret_cast<const char*>(all[rank].const_data_ptr<std::uint8_t>()), own);
  }
  return texts;
}

}  // namespace stoker::core
