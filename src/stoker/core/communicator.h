// SPDX-License-Identifier: Apache-2.0
// The ranks of a run as the engine sees them, and an implementation for a single one. parallel/ has the real group.
// Every rank must make the same calls in the same order, with the same shapes and dtypes. One thread per rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stoker::core {

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Ranks of this machine, which share its cores.
  [[nodiscard]] virtual int size_here() const { return size(); }
  // The place of this rank among them.
  [[nodiscard]] virtual int rank_here() const { return rank(); }
  // Replaces tensor by its sum over ranks.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  // Replaces tensor by its largest value over ranks, element by element.
  virtual void all_reduce_max(at::Tensor& tensor) = 0;
  // Replaces tensor by the tensor of one rank.
  virtual void broadcast(at::Tensor& tensor, int from) = 0;
  // Each rank's tensor, by rank.
  [[nodiscard]] virtual std::vector<at::Tensor> all_gather(const at::Tensor& tensor) = 0;
  // As all_gather() of a tensor on the host, whose size all ranks know: sizes are not compared.
  [[nodiscard]] virtual std::vector<at::Tensor> exchange(const at::Tensor& tensor) { return all_gather(tensor); }
  // Returns after every rank has called it.
  virtual void barrier() = 0;

  // A collective that goes on beside other work.
  class Pending {
   public:
    virtual ~Pending() = default;
    // Returns when it is done; once. Of a tensor on a GPU: later work of the current stream waits, not the host.
    virtual void wait() = 0;
    // After wait(): from its start on this rank until it was done; -1: unknown.
    [[nodiscard]] virtual double seconds() const { return -1; }
  };
  // Starts to replace tensor, a contiguous one, by its sum over ranks. Nobody may touch tensor before wait(). Sizes are
  // not compared: for exchanges whose sizes all ranks know. May be called on a thread of backward; null: done already.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(at::Tensor& tensor) {
    all_reduce_sum(tensor);
    return nullptr;
  }
  // Starts exchange() of a contiguous tensor; all: a row per rank, [ranks, numel], complete after wait(). It is made if
  // it is undefined, else written.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_exchange(const at::Tensor& tensor, at::Tensor& all);
  // Messages between two ranks, in the order of the calls: the one that goes to a rank is the one that it starts to
  // receive in its turn. Both know size and dtype, which are not compared. tensor: a contiguous one, that nobody
  // touches before wait(). Two ranks that wait until they have sent each other something may wait for ever: start both
  // first. Errors of other ranks are thrown by each of these calls. What is returned may be dropped without wait();
  // null: done already.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int to);
  [[nodiscard]] virtual std::unique_ptr<Pending> start_receive(at::Tensor& tensor, int from);
  void send(const at::Tensor& tensor, int to);
  void receive(at::Tensor& tensor, int from);

  // The ranks that give the same number, as ranks of their own in the same order. They take part in the collectives of
  // all ranks as before; leave() of either ends both. A collective call; this object outlives the result.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(int group);

  // An error ends this rank before the others: they throw it, too, in the first collective that this rank misses. Not a
  // collective call.
  virtual void leave(const std::exception& error) { (void)error; }
  // Returns when the collectives of tensors on GPUs that this rank waits for are done, so that what they write may be
  // kept. RankError if they will not be, since a rank is gone. Not a collective call.
  virtual void settle() {}
  // Where each rank writes its last collectives if it loses the others. Not a collective call.
  virtual void keep_record_in(const std::filesystem::path& folder) { (void)folder; }
  // Why the ranks should end soon: the failure of one could not be told to the others any more. Empty: nothing is
  // wrong. Not a collective call.
  [[nodiscard]] virtual std::string trouble() const { return ""; }
};

class SingleRank final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
  void all_reduce_max(at::Tensor&) override {}
  void broadcast(at::Tensor&, int) override {}
  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override { return {tensor}; }
  void barrier() override {}
  [[nodiscard]] std::unique_ptr<Communicator> split(int) override { return std::make_unique<SingleRank>(); }
};

// Sets each flag that is set on any rank. A collective call.
void any_rank(Communicator& ranks, std::span<bool> flags);
// Does work on each rank. If it fails on one, it fails on all: with its own error there, elsewhere with one of the
// same type that tells its message. work makes no collective call; together() is one.
void together(Communicator& ranks, const std::function<void()>& work);
// The text of rank 0. A collective call.
[[nodiscard]] std::string text_of_first_rank(Communicator& ranks, std::string text);
// The texts of all ranks, by rank. A collective call.
[[nodiscard]] std::vector<std::string> texts_of_ranks(Communicator& ranks, const std::string& text);

}  // namespace stoker::core
