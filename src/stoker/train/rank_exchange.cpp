// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/rank_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.ranks";
// The header of a message, float64: then the losses, then the counts.
enum Field : std::int64_t { kNumber, kLimit, kFailed, kLate, kStopped, kWhole, kFields };

at::Device device_of(const core::Trainable& model) { return model.parameters().front().tensor.device(); }

const double* header_of(const at::Tensor& messages, int rank) {
  return reinterpret_cast<const double*>(messages.const_data_ptr<std::uint8_t>() + rank * messages.size(1));
}

}  // namespace

RankExchange::RankExchange(core::Communicator& ranks, const core::Trainable& model, bool bf16)
    : ranks_(ranks.split(0)),
      terms_(model.loss_names().size()),
      counts_samples_(model.counts_samples()),
      device_(device_of(model)),
      gradients_(*ranks_, model.parameters(), {}, header_bytes(model), bf16) {
  // Here, so that finish() needs no memory on a CPU: a rank that runs out of it there would leave the others waiting.
  messages_ = at::zeros({ranks_->size(), gradients_.message().numel()}, at::kByte);
  losses_ = at::zeros({static_cast<std::int64_t>(terms_)}, at::kDouble);
  normalisers_ = at::zeros({ranks_->size(), static_cast<std::int64_t>(terms_)}, at::kDouble);
  if (!device_.is_cpu()) {
    on_device_.emplace(*ranks_, device_, static_cast<std::int64_t>(terms_), counts_);
  }
  check_same_model();
}

RankExchange::~RankExchange() = default;

std::int64_t RankExchange::header_bytes(const core::Trainable& model) {
  auto values = kFields + static_cast<std::int64_t>(terms_);
  for (const at::Tensor& buffer : model.norm_buffers()) {
    if (buffer.is_floating_point()) {
      statistics_.push_back({buffer, at::empty_like(buffer, buffer.options(), at::MemoryFormat::Contiguous), nullptr});
    } else {
      counts_.push_back(buffer);
      values += buffer.numel();
    }
  }
  return values * static_cast<std::int64_t>(sizeof(double));
}

// Once, so that no later exchange can have different sizes: torch would end the process.
void RankExchange::check_same_model() {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  std::uint64_t hash = (gradients_.hash() ^ terms_) * kOdd + (counts_samples_ ? 1 : 0);
  for (const Statistic& each : statistics_) {
    hash = (hash ^ static_cast<std::uint64_t>(each.sum.numel())) * kOdd;
  }
  for (const at::Tensor& each : counts_) {
    hash = (hash ^ static_cast<std::uint64_t>(each.numel())) * kOdd;
  }
  const std::vector<at::Tensor> all = ranks_->exchange(at::full({1}, static_cast<std::int64_t>(hash), at::kLong));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<std::uint64_t>(*all[rank].const_data_ptr<std::int64_t>()) != hash) {
      fail<Error>(kWhere,
                  "rank {} has another model than rank {}; all ranks need the same data, plan and version of Stoker",
                  rank, ranks_->rank());
    }
  }
}

void RankExchange::normalise(core::Normalisers& normalisers, std::int64_t samples) {
  const at::NoGradGuard no_grad;
  if (counts_samples_) {
    normalisers.fill_(static_cast<double>(samples));
    return;
  }
  const core::PhaseScope phase(core::Phase::kExchange);
  if (!normalisers.is_cpu()) {  // the host would have to wait for them
    const auto sum = ranks_->start_sum(normalisers);
    if (sum) {
      sum->wait();
    }
    return;
  }
  if (const auto pending = ranks_->start_exchange(normalisers, normalisers_)) {
    pending->wait();
  }
  normalisers.zero_();
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    normalisers.add_(normalisers_[rank]);
  }
}

void RankExchange::start_statistics() {
  const at::NoGradGuard no_grad;
  for (Statistic& each : statistics_) {
    whole_ ? each.sum.copy_(each.own) : each.sum.zero_();
    each.pending = ranks_->start_sum(each.sum);
  }
  begun_ = true;
}

void RankExchange::last_pass() {
  start_statistics();
  gradients_.begin();
}

void RankExchange::write_header(const RankReport& report, const at::Tensor& loss_parts, const EndWishes& wishes) {
  auto* const fields = reinterpret_cast<double*>(gradients_.message().mutable_data_ptr<std::uint8_t>());
  fields[kNumber] = static_cast<double>(report.number);
  fields[kLimit] = report.limit > 0 ? static_cast<double>(report.limit) : std::numeric_limits<double>::infinity();
  fields[kFailed] = report.failed ? 1 : 0;
  fields[kLate] = wishes.late ? 1 : 0;
  fields[kStopped] = wishes.stopped ? 1 : 0;
  fields[kWhole] = whole_ ? 1 : 0;
  if (on_device_) {
    on_device_->start(report.failed ? at::Tensor() : loss_parts);
    return;
  }
  double* next = std::fill_n(fields + kFields, terms_, 0.0) - terms_;
  if (!report.failed && loss_parts.defined()) {
    std::copy_n(loss_parts.const_data_ptr<double>(), terms_, next);
  }
  next += terms_;
  for (const at::Tensor& each : counts_) {
    at::from_blob(next, each.sizes(), at::kDouble).copy_(each);
    next += each.numel();
  }
}

bool RankExchange::finish(const RankReport& report, at::Tensor& loss_parts, EndWishes& wishes) {
  const core::PhaseScope phase(core::Phase::kExchange);
  const at::NoGradGuard no_grad;
  if (!begun_) {
    start_statistics();
  }
  begun_ = false;
  gradients_.start_rest(report.failed);
  write_header(report, loss_parts, wishes);
  const auto pending = ranks_->start_exchange(gradients_.message(), messages_);
  for (const Statistic& each : statistics_) {
    if (each.pending) {
      each.pending->wait();
    }
  }
  if (pending) {
    pending->wait();
  }
  if (on_device_) {
    on_device_->wait();
  }
  gradients_.wait(messages_);
  const bool whole = read_headers(messages_, report.number, wishes);
  if (whole) {
    loss_parts = on_device_ ? on_device_->losses() : losses_;
    average_statistics(messages_);
  }
  return whole;
}

// Whether no rank failed.
bool RankExchange::read_headers(const at::Tensor& messages, std::int64_t number, EndWishes& wishes) {
  auto* const sums = losses_.mutable_data_ptr<double>();
  std::fill_n(sums, terms_, 0.0);
  double least = std::numeric_limits<double>::infinity();
  bool failed = false;
  wholes_ = 0;
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    const double* const theirs = header_of(messages, rank);
    wholes_ += theirs[kWhole];
    if (static_cast<std::int64_t>(theirs[kNumber]) != number) {
      fail<Error>(kWhere, "rank {} takes step {}, but rank {} takes step {}; all ranks must take the same steps",
                  ranks_->rank(), number + 1, rank, static_cast<std::int64_t>(theirs[kNumber]) + 1);
    }
    least = std::min(least, theirs[kLimit]);
    failed = failed || theirs[kFailed] != 0;
    wishes.late = wishes.late || theirs[kLate] != 0;
    wishes.stopped = wishes.stopped || theirs[kStopped] != 0;
    for (std::size_t term = 0; term < terms_; ++term) {
      sums[term] += theirs[kFields + static_cast<std::int64_t>(term)];
    }
  }
  limit_ = least == std::numeric_limits<double>::infinity() ? 0 : static_cast<std::int64_t>(least);
  return !failed;
}

// Each rank has seen other samples, but all must evaluate the same model.
void RankExchange::average_statistics(const at::Tensor& messages) {
  for (Statistic& each : statistics_) {
    if (wholes_ > 0) {
      each.own.copy_(each.sum.div_(wholes_));
    }
  }
  if (on_device_) {
    on_device_->keep_counts();
    return;
  }
  std::int64_t place = kFields + static_cast<std::int64_t>(terms_);
  for (at::Tensor& count : counts_) {
    std::vector<double> most(static_cast<std::size_t>(count.numel()), 0);
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      const double* const theirs = header_of(messages, rank) + place;
      for (std::size_t i = 0; i < most.size(); ++i) {
        most[i] = std::max(most[i], theirs[i]);
      }
    }
    place += count.numel();
    count.copy_(at::from_blob(most.data(), count.sizes(), at::kDouble));
  }
}

}  // namespace stoker::train
