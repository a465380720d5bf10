// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/rank_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.ranks";
enum Flag : std::int64_t { kFailed, kLate, kStopped, kFlags };  // after the losses; how many ranks
enum Field : std::int64_t { kNumber, kHash, kLimit, kFields };  // of a rank's message; then its normalisers

at::Device device_of(const core::Trainable& model) { return model.parameters().front().tensor.device(); }

// Exact in a double.
std::uint64_t short_hash(std::uint64_t hash) { return hash >> 12; }

}  // namespace

RankExchange::RankExchange(core::Communicator& ranks, const core::Trainable& model)
    : ranks_(ranks),
      gradients_(ranks, model.parameters()),
      norm_(model.norm_buffers()),
      terms_(model.loss_names().size()),
      hash_(gradients_.hash()),
      device_(device_of(model)) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  for (const at::Tensor& each : norm_) {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(each.numel())) * kOdd;
  }
  hash_ = short_hash((hash_ ^ terms_) * kOdd);
}

std::int64_t RankExchange::begin(std::int64_t number, std::int64_t limit, core::Normalisers& normalisers) {
  const core::PhaseScope phase(core::Phase::kExchange);
  const at::NoGradGuard no_grad;
  const bool here = normalisers.is_cpu();  // elsewhere the host would have to wait for them
  const auto extra = here ? normalisers.numel() : 0;
  const at::Tensor mine = at::empty({kFields + extra}, at::kDouble);
  auto* const fields = mine.mutable_data_ptr<double>();
  fields[kNumber] = static_cast<double>(number);
  fields[kHash] = static_cast<double>(hash_);
  fields[kLimit] = limit > 0 ? static_cast<double>(limit) : std::numeric_limits<double>::infinity();
  if (here) {
    std::copy_n(normalisers.const_data_ptr<double>(), extra, fields + kFields);
  }
  const std::vector<at::Tensor> all = ranks_.exchange(mine);
  double least = fields[kLimit];
  at::Tensor sum = at::zeros({extra}, at::kDouble);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto* const theirs = all[rank].const_data_ptr<double>();
    if (theirs[kNumber] != fields[kNumber] || theirs[kHash] != fields[kHash]) {
      fail<Error>(kWhere,
                  "rank {} begins step {:.0f}{}, but rank {} begins step {:.0f}; all ranks need the same data, "
                  "plan and version of Stoker",
                  ranks_.rank(), fields[kNumber] + 1, theirs[kHash] != fields[kHash] ? " of another model" : "", rank,
                  theirs[kNumber] + 1);
    }
    least = std::min(least, theirs[kLimit]);
    for (std::int64_t i = 0; i < extra; ++i) {
      sum.mutable_data_ptr<double>()[i] += theirs[kFields + i];
    }
  }
  if (here) {
    normalisers = sum;
  } else {
    ranks_.all_reduce_sum(normalisers);
  }
  return least == std::numeric_limits<double>::infinity() ? 0 : static_cast<std::int64_t>(least);
}

bool RankExchange::finish(bool failed, at::Tensor& loss_parts, EndWishes& wishes) {
  const core::PhaseScope phase(core::Phase::kExchange);
  const at::NoGradGuard no_grad;
  const auto terms = static_cast<std::int64_t>(terms_);
  const at::Tensor own = at::zeros({terms + kFlags}, at::kDouble);
  auto* const flags = own.mutable_data_ptr<double>() + terms;
  flags[kFailed] = failed ? 1 : 0;
  flags[kLate] = wishes.late ? 1 : 0;
  flags[kStopped] = wishes.stopped ? 1 : 0;
  at::Tensor sums = own.to(device_);
  if (!failed && loss_parts.defined()) {
    sums.narrow(0, 0, terms).copy_(loss_parts);
  }
  gradients_.start_rest(failed);
  const auto pending = ranks_.start_sum(sums);
  gradients_.wait();
  if (pending) {
    pending->wait();
  }
  const at::Tensor here = sums.cpu();
  const auto* const found = here.const_data_ptr<double>() + terms;
  wishes = {.late = found[kLate] != 0, .stopped = found[kStopped] != 0};
  if (found[kFailed] != 0) {
    return false;
  }
  loss_parts = sums.narrow(0, 0, terms);
  average_statistics();
  return true;
}

// Each rank has seen other samples, but all must evaluate the same model.
void RankExchange::average_statistics() {
  for (at::Tensor& buffer : norm_) {
    if (!buffer.is_floating_point()) {  // a count
      ranks_.all_reduce_max(buffer);
      continue;
    }
    ranks_.all_reduce_sum(buffer);
    buffer.div_(ranks_.size());
  }
}

}  // namespace stoker::train
