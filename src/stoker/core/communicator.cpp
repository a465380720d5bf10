// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <exception>

#include "stoker/base/error.h"

namespace stoker::core {

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

void together(Communicator& ranks, const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  std::array failed{error != nullptr};
  any_rank(ranks, failed);
  if (error) {
    std::rethrow_exception(error);
  }
  if (failed[0]) {
    fail<Error>("core.ranks", "another rank failed; its own error says why");
  }
}

std::string text_of_first_rank(Communicator& ranks, std::string text) {
  if (ranks.size() == 1) {
    return text;
  }
  at::Tensor size = at::zeros({1}, at::kLong);
  *size.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  ranks.broadcast(size, 0);
  text.resize(static_cast<std::size_t>(*size.const_data_ptr<std::int64_t>()));
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, bytes.mutable_data_ptr<std::uint8_t>());
  ranks.broadcast(bytes, 0);
  std::copy_n(bytes.const_data_ptr<std::uint8_t>(), text.size(), text.begin());
  return text;
}

}  // namespace stoker::core
