// SPDX-License-Identifier: Apache-2.0
// Several ranks in one process. Only one runs at a time, because they share the process's random generator: each rank
// runs until its next collective call, or until it waits for a message, then the next rank runs. Tensors are exchanged
// as they are. Ranks that all wait for each other get an error.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/communicator.h"

namespace stoker::testing {

class LockstepRanks {
 public:
  explicit LockstepRanks(int size) : size_(size), done_(static_cast<std::size_t>(size)) {}

  // Runs work on one thread per rank, and rethrows the error of the lowest rank that failed.
  void run(const std::function<void(core::Communicator&)>& work) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size_));
    const auto all = std::make_shared<Group>();
    for (int rank = 0; rank < size_; ++rank) {
      all->members.push_back(rank);
    }
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size_; ++rank) {
        threads.emplace_back([&, rank] {
          Rank communicator(*this, all, rank);
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
  struct Round {
    std::vector<at::Tensor> slots;
    std::size_t arrived = 0, taken = 0;
  };
  struct Mail {  // no tensor: tests make the allocations of tensors fail
    at::ScalarType type;
    std::string bytes;
  };
  struct Group {
    std::vector<int> members;                        // threads, by rank
    std::map<std::size_t, Round> rounds;             // collectives that some ranks have not finished
    std::map<std::tuple<int, int, int>, Mail> mail;  // from, to, number
    std::map<std::pair<std::size_t, int>, std::shared_ptr<Group>> parts;  // by number of the split, and group
  };

  class Rank final : public core::Communicator {
   public:
    Rank(LockstepRanks& all, std::shared_ptr<Group> group, int rank)
        : all_(all), group_(std::move(group)), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(group_->members.size()); }
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
      const std::size_t number = round_++;
      Round& round = group_->rounds[number];
      round.slots.resize(group_->members.size());
      round.slots[static_cast<std::size_t>(rank_)] = tensor.defined() ? tensor.clone() : tensor;
      ++round.arrived;
      all_.stalled_ = 0;
      all_.pass_turn(thread(), /*done=*/false);
      all_.wait_for_turn(thread());
      all_.wait_until(thread(), [&] { return round.arrived == group_->members.size(); });
      std::vector<at::Tensor> slots = round.slots;
      if (++round.taken == group_->members.size()) {
        group_->rounds.erase(number);
      }
      return slots;
    }
    void barrier() override { (void)all_gather(at::Tensor()); }

    [[nodiscard]] std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int to) override {
      group_->mail[{rank_, to, sent_[to]++}] = {
          tensor.scalar_type(), std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes())};
      all_.stalled_ = 0;
      return nullptr;
    }
    [[nodiscard]] std::unique_ptr<Pending> start_receive(at::Tensor& tensor, int from) override {
      return std::make_unique<Message>(*this, std::tuple(from, rank_, received_[from]++), tensor);
    }
    [[nodiscard]] std::unique_ptr<Communicator> split(int group) override {
      const std::size_t number = splits_++;
      const std::vector<at::Tensor> groups = all_gather(at::full({1}, group, at::kLong));
      auto& part = group_->parts[{number, group}];
      const bool first = part == nullptr;
      part = first ? std::make_shared<Group>() : part;
      int own = 0;
      for (std::size_t other = 0; other < groups.size(); ++other) {
        if (*groups[other].const_data_ptr<std::int64_t>() == group) {
          own += static_cast<int>(other) < rank_ ? 1 : 0;
          if (first) {
            part->members.push_back(group_->members[other]);
          }
        }
      }
      return std::make_unique<Rank>(all_, part, own);
    }

   private:
    class Message final : public Pending {
     public:
      Message(Rank& to, std::tuple<int, int, int> key, at::Tensor tensor)
          : to_(to), key_(key), tensor_(std::move(tensor)) {}
      void wait() override {
        auto& mail = to_.group_->mail;
        to_.all_.wait_until(to_.thread(), [&] { return mail.contains(key_); });
        const Mail sent = mail.extract(key_).mapped();
        if (sent.bytes.size() != tensor_.nbytes() || sent.type != tensor_.scalar_type()) {
          fail<Error>("test.ranks", "rank {} receives {} bytes, but rank {} sent {}", to_.rank_, tensor_.nbytes(),
                      std::get<0>(key_), sent.bytes.size());
        }
        std::ranges::copy(sent.bytes, static_cast<char*>(tensor_.mutable_data_ptr()));
      }

     private:
      Rank& to_;
      std::tuple<int, int, int> key_;
      at::Tensor tensor_;
    };

    [[nodiscard]] int thread() const { return group_->members[static_cast<std::size_t>(rank_)]; }

    LockstepRanks& all_;
    std::shared_ptr<Group> group_;
    int rank_;
    std::size_t round_ = 0, splits_ = 0;
    std::map<int, int> sent_, received_;  // messages, by rank
  };

  void wait_for_turn(int thread) {
    std::unique_lock lock(mutex_);
    turned_.wait(lock, [&] { return turn_ == thread; });
  }
  void pass_turn(int thread, bool done) {
    const std::lock_guard lock(mutex_);
    done_[static_cast<std::size_t>(thread)] = done;
    for (int next = 1; next <= size_; ++next) {
      turn_ = (thread + next) % size_;
      if (!done_[static_cast<std::size_t>(turn_)]) {
        break;
      }
    }
    turned_.notify_all();
  }
  void wait_until(int thread, const std::function<bool()>& condition) {
    while (!condition()) {
      if (++stalled_ > 2 * size_) {
        fail<Error>("test.ranks", "all ranks wait for each other");
      }
      pass_turn(thread, /*done=*/false);
      wait_for_turn(thread);
    }
    stalled_ = 0;
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable turned_;
  int turn_ = 0;
  int stalled_ = 0;  // turns in a row in which no rank could go on
  std::vector<bool> done_;
};

}  // namespace stoker::testing
