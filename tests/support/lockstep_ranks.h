// SPDX-License-Identifier: Apache-2.0
// Several ranks in one process. Only one runs at a time, because they share the process's random generator: each rank
// runs until its next collective call, then the next rank runs. Tensors are exchanged as they are.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "stoker/core/communicator.h"

namespace stoker::testing {

class LockstepRanks {
 public:
  explicit LockstepRanks(int size) : size_(size), done_(static_cast<std::size_t>(size)) {
    for (auto& slots : slots_) {
      slots.resize(static_cast<std::size_t>(size));
    }
  }

  // Runs work on one thread per rank, and rethrows the error of the lowest rank that failed.
  void run(const std::function<void(core::Communicator&)>& work) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size_));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size_; ++rank) {
        threads.emplace_back([&, rank] {
          Rank communicator(*this, rank);
          wait_for_turn(rank);
          try {
            work(communicator);
          } catch (...) {
            errors[static_cast<std::size_t>(rank)] = std::current_exception();
          }
          pass_turn(rank, /*done=*/true);
        });
      }
    }
    for (const std::exception_ptr& error : errors) {
      if (error) {
        std::rethrow_exception(error);
      }
    }
  }

 private:
  class Rank final : public core::Communicator {
   public:
    Rank(LockstepRanks& all, int rank) : all_(all), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return all_.size_; }
    void all_reduce_sum(at::Tensor& tensor) override {
      const std::vector<at::Tensor> parts = all_gather(tensor);
      at::Tensor sum = parts[0].clone();
      for (std::size_t i = 1; i < parts.size(); ++i) {
        sum += parts[i];
      }
      tensor.copy_(sum);
    }
    void all_reduce_max(at::Tensor& tensor) override {
      for (const at::Tensor& part : all_gather(tensor)) {
        tensor.copy_(at::max(tensor, part));
      }
    }
    void broadcast(at::Tensor& tensor, int from) override {
      tensor.copy_(all_gather(tensor)[static_cast<std::size_t>(from)]);
    }
    [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
      auto& slots = all_.slots_[round_++ % 2];  // a rank that is one round ahead uses the other slots
      slots[static_cast<std::size_t>(rank_)] = tensor.clone();
      all_.pass_turn(rank_, /*done=*/false);
      all_.wait_for_turn(rank_);
      return slots;
    }
    void barrier() override { (void)all_gather(at::empty({0})); }

   private:
    LockstepRanks& all_;
    int rank_;
    std::size_t round_ = 0;
  };

  void wait_for_turn(int rank) {
    std::unique_lock lock(mutex_);
    turned_.wait(lock, [&] { return turn_ == rank; });
  }
  void pass_turn(int rank, bool done) {
    const std::lock_guard lock(mutex_);
    done_[static_cast<std::size_t>(rank)] = done;
    for (int next = 1; next <= size_; ++next) {
      turn_ = (rank + next) % size_;
      if (!done_[static_cast<std::size_t>(turn_)]) {
        break;
      }
    }
    turned_.notify_all();
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable turned_;
  int turn_ = 0;
  std::vector<bool> done_;
  std::array<std::vector<at::Tensor>, 2> slots_;
};

}  // namespace stoker::testing
