// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/rank_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.ranks";
// The header of a message, float64: then the losses, then the counts.
enum Field : std::int64_t {
  kNumber,
  kLimit,
  kFailed,
  kLate,
  kStopped,
  kWhole,
  kTimes,  // of RankClock
  kFields = kTimes + RankClock::kFields
};

at::Device device_of(const core::Trainable& model) { return model.parameters().front().tensor.device(); }

const double* header_of(const at::Tensor& messages, int rank) {
  return reinterpret_cast<const double*>(messages.const_data_ptr<std::uint8_t>() + rank * messages.size(1));
}

}  // namespace

RankExchange::RankExchange(core::Communicator& ranks, const core::Trainable& model, parallel::Stages* stages, bool bf16)
    : ranks_(ranks.split(0)),
      stages_(stages),
      sums_(stages != nullptr ? stages->replicas() : *ranks_),
      terms_(model.loss_names().size()),
      counts_samples_(model.counts_samples()),
      device_(device_of(model)),
      clock_(ranks_->size()) {
  // Here, so that finish() needs no memory on a CPU: a rank that runs out of it there would leave the others waiting.
  const std::int64_t header = header_bytes(model);
  if (stages == nullptr) {
    gradients_.emplace(*ranks_, model.parameters(), parallel::BucketSizes(), header, bf16);
  } else {
    header_ = at::zeros({header}, at::kByte);
    pair_ = at::zeros({2}, at::kDouble);
    pairs_ = at::zeros({ranks_->size(), 2}, at::kDouble);
    stage_pairs_ = at::zeros({stages->count(), 2}, at::kDouble);
    if (sums_.size() > 1) {
      gradients_.emplace(sums_, stages->own_parameters(), parallel::BucketSizes(), 0, bf16);
      sums_messages_ = at::zeros({sums_.size(), gradients_->message().numel()}, at::kByte);
    }
  }
  messages_ = at::zeros({ranks_->size(), message().numel()}, at::kByte);
  losses_ = at::zeros({static_cast<std::int64_t>(terms_)}, at::kDouble);
  normalisers_ = at::zeros({sums_.size(), static_cast<std::int64_t>(terms_)}, at::kDouble);
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
      statistics_.push_back({buffer, at::empty_like(buffer, buffer.options(), at::MemoryFormat::Contiguous),
                             at::full({}, sums_.size(), buffer.options()), nullptr});
    } else {
      counts_.push_back(buffer);
      values += buffer.numel();
    }
  }
  return values * static_cast<std::int64_t>(sizeof(double));
}

// Once, so that no later exchange can have different sizes: torch would end the process.
void RankExchange::check_same_model() const {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  std::uint64_t hash = terms_ * kOdd + (counts_samples_ ? 1 : 0);
  for (const Statistic& each : statistics_) {
    hash = (hash ^ static_cast<std::uint64_t>(each.sum.numel())) * kOdd;
  }
  for (const at::Tensor& each : counts_) {
    hash = (hash ^ static_cast<std::uint64_t>(each.numel())) * kOdd;
  }
  if (stages_ != nullptr) {
    check_equal(*ranks_, hash ^ static_cast<std::uint64_t>(stages_->count()));
  }
  check_equal(sums_, hash ^ (gradients_ ? gradients_->hash() : 0));
}

void RankExchange::check_equal(core::Communicator& ranks, std::uint64_t hash) const {
  const std::vector<at::Tensor> all = ranks.exchange(at::full({1}, static_cast<std::int64_t>(hash), at::kLong));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<std::uint64_t>(*all[rank].const_data_ptr<std::int64_t>()) != hash) {
      fail<Error>(kWhere,
                  "rank {} has another model than rank {}; all ranks need the same data, plan and version of Stoker",
                  rank, ranks.rank());
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
    const auto sum = sums_.start_sum(normalisers);
    if (sum) {
      sum->wait();
    }
    return;
  }
  if (const auto pending = sums_.start_exchange(normalisers, normalisers_)) {
    pending->wait();
  }
  normalisers.zero_();
  for (int rank = 0; rank < sums_.size(); ++rank) {
    normalisers.add_(normalisers_[rank]);
  }
}

std::int64_t RankExchange::agree(std::int64_t limit) {
  const core::PhaseScope phase(core::Phase::kExchange);
  constexpr double kAll = std::numeric_limits<double>::infinity();
  pair_.mutable_data_ptr<double>()[0] = limit > 0 ? static_cast<double>(limit) : kAll;
  if (const auto pending = ranks_->start_exchange(pair_, pairs_)) {
    pending->wait();
  }
  double least = kAll;
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    least = std::min(least, pairs_.const_data_ptr<double>()[2 * rank]);
  }
  return least == kAll ? 0 : static_cast<std::int64_t>(least);
}

void RankExchange::combine(double& norm, bool& infinite) {
  const core::PhaseScope phase(core::Phase::kExchange);
  auto* const own = pair_.mutable_data_ptr<double>();
  own[0] = norm * norm;
  own[1] = infinite ? 1 : 0;
  if (const auto pending = stages_->pipeline().start_exchange(pair_, stage_pairs_)) {
    pending->wait();
  }
  const auto* const all = stage_pairs_.const_data_ptr<double>();
  double squares = 0;
  for (int stage = 0; stage < stages_->count(); ++stage) {
    squares += all[2 * stage];
    infinite = infinite || all[2 * stage + 1] != 0;
  }
  norm = std::sqrt(squares);
}

void RankExchange::start_statistics() {
  const at::NoGradGuard no_grad;
  for (Statistic& each : statistics_) {
    if (sums_.size() == 1) {  // one pipeline: each statistic is that of one rank
      break;
    }
    whole_ ? each.sum.copy_(each.own) : each.sum.zero_();
    each.pending = sums_.start_sum(each.sum);
  }
  begun_ = true;
}

void RankExchange::last_pass() {
  start_statistics();
  if (gradients_) {
    gradients_->begin();
  }
}

void RankExchange::write_header(const RankReport& report, const at::Tensor& loss_parts, const EndWishes& wishes) {
  auto* const fields = reinterpret_cast<double*>(message().mutable_data_ptr<std::uint8_t>());
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
  clock_.begin();
  if (!begun_) {
    start_statistics();
  }
  begun_ = false;
  if (gradients_) {
    gradients_->start_rest(report.failed);
  }
  write_header(report, loss_parts, wishes);
  clock_.arrive(reinterpret_cast<double*>(message().mutable_data_ptr<std::uint8_t>()) + kTimes);
  const auto pending = ranks_->start_exchange(message(), messages_);
  std::unique_ptr<core::Communicator::Pending> rest;  // a last bucket that rides
  if (sums_messages_.defined() && sums_messages_.numel() > 0) {
    rest = sums_.start_exchange(gradients_->message(), sums_messages_);
  }
  for (const Statistic& each : statistics_) {
    if (each.pending) {
      each.pending->wait();
    }
  }
  for (core::Communicator::Pending* each : {rest.get(), pending.get()}) {
    if (each != nullptr) {
      each->wait();
    }
  }
  if (gradients_) {
    gradients_->wait(stages_ != nullptr ? sums_messages_ : messages_);
  }
  clock_.end();
  if (on_device_) {
    on_device_->wait();
  }
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
    wholes_ += theirs[kWhole] != 0 ? 1 : 0;
    if (static_cast<std::int64_t>(theirs[kNumber]) != number) {
      fail<Error>(kWhere, "rank {} takes step {}, but rank {} takes step {}; all ranks must take the same steps",
                  ranks_->rank(), number + 1, rank, static_cast<std::int64_t>(theirs[kNumber]) + 1);
    }
    clock_.heard(rank, theirs + kTimes);
    least = std::min(least, theirs[kLimit]);
    failed = failed || theirs[kFailed] != 0;
    wishes.late = wishes.late || theirs[kLate] != 0;
    wishes.stopped = wishes.stopped || theirs[kStopped] != 0;
    for (std::size_t term = 0; term < terms_; ++term) {
      sums[term] += theirs[kFields + static_cast<std::int64_t>(term)];
    }
  }
  clock_.heard_all();
  limit_ = least == std::numeric_limits<double>::infinity() ? 0 : static_cast<std::int64_t>(least);
  return !failed;
}

// Each rank has seen other samples, but all must evaluate the same model. A stage keeps what others compute.
void RankExchange::average_statistics(const at::Tensor& messages) {
  for (std::size_t i = 0; i < statistics_.size() && wholes_ > 0; ++i) {
    Statistic& each = statistics_[i];
    if (stages_ == nullptr) {
      each.own.copy_(each.sum.div_(each.ranks.fill_(wholes_)));
    } else if (sums_.size() > 1) {
      at::where_out(each.own, stages_->own_statistics()[i], each.sum.div_(each.ranks), each.own);
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

core::RankTimes RankExchange::times() const {
  core::RankTimes times = clock_.sums();
  if (gradients_) {
    times.buckets = gradients_->times();
  }
  return times;
}

}  // namespace stoker::train
