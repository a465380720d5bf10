// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/recording_rank.h"

#include <utility>

namespace stoker::study {
namespace {

constexpr double kCheckBytes = 3 * sizeof(std::int64_t);  // operation, type and size: parallel/process_group.cpp

double bytes_of(const at::Tensor& tensor) { return static_cast<double>(tensor.nbytes()); }

}  // namespace

class RecordingRank::Sum final : public Pending {
 public:
  Sum(RecordingRank& rank, std::size_t number) : rank_(rank), number_(number) {}
  void wait() override { rank_.add(Call::Kind::kWait, 0, number_); }

 private:
  RecordingRank& rank_;
  std::size_t number_;
};

void RecordingRank::begin() {
  calls_.clear();
  started_ = 0;
  began_ = now_s();
}

Course RecordingRank::end() { return {now_s() - began_, std::exchange(calls_, {})}; }

void RecordingRank::add(Call::Kind kind, double bytes, std::size_t sum) {
  calls_.push_back({kind, now_s() - began_, bytes, sum});
}

void RecordingRank::add_check() { add(Call::Kind::kGather, kCheckBytes); }

// The other rank has the same values, so that averages stay what they are.
void RecordingRank::all_reduce_sum(at::Tensor& tensor) {
  add_check();
  add(Call::Kind::kSum, bytes_of(tensor));
  tensor.mul_(2);
}

void RecordingRank::all_reduce_max(at::Tensor& tensor) {
  add_check();
  add(Call::Kind::kSum, bytes_of(tensor));
}

// Half a sum in each pattern; steps have none.
void RecordingRank::broadcast(at::Tensor& tensor, int) {
  add_check();
  add(Call::Kind::kSum, bytes_of(tensor));
}

std::vector<at::Tensor> RecordingRank::all_gather(const at::Tensor& tensor) {
  add_check();
  return exchange(tensor);
}

std::vector<at::Tensor> RecordingRank::exchange(const at::Tensor& tensor) {
  add(Call::Kind::kGather, bytes_of(tensor));
  return {tensor, tensor};
}

std::unique_ptr<core::Communicator::Pending> RecordingRank::start_sum(at::Tensor& tensor) {
  add(Call::Kind::kStart, bytes_of(tensor));
  return std::make_unique<Sum>(*this, started_++);
}

class RecordingRank::Again final : public core::Communicator {
 public:
  explicit Again(RecordingRank& all) : all_(all) {}
  [[nodiscard]] int rank() const override { return all_.rank(); }
  [[nodiscard]] int size() const override { return all_.size(); }
  void all_reduce_sum(at::Tensor& tensor) override { all_.all_reduce_sum(tensor); }
  void all_reduce_max(at::Tensor& tensor) override { all_.all_reduce_max(tensor); }
  void broadcast(at::Tensor& tensor, int from) override { all_.broadcast(tensor, from); }
  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    return all_.all_gather(tensor);
  }
  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& tensor) override { return all_.exchange(tensor); }
  void barrier() override { all_.barrier(); }
  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override { return all_.start_sum(tensor); }

 private:
  RecordingRank& all_;
};

std::unique_ptr<core::Communicator> RecordingRank::split(int) { return std::make_unique<Again>(*this); }

}  // namespace stoker::study
