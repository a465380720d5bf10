// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/process_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Flags.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/core/first_line.h"
#include "stoker/device/host_allocator.h"
#include "stoker/parallel/device_group.h"
#include "stoker/parallel/group_members.h"
#include "stoker/parallel/lifeline.h"
#include "stoker/parallel/local_address.h"
#include "stoker/parallel/meeting.h"
#include "stoker/parallel/messages.h"
#include "stoker/parallel/store.h"

C10_DECLARE_int(caffe2_log_level);

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.ranks";
constexpr int kLogNothing = 4;                          // above torch's "fatal"
constexpr auto kStoreIsGone = std::chrono::seconds(2);  // without an answer
constexpr auto kOnDevice = std::chrono::seconds(2);     // longest wait of a rank that leaves for its GPU

class Gloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  // Operations of peers that wait for this rank throw; its own ones would wait on. ProcessGroupGloo's abort() does
  // nothing.
  void close() {
    for (const auto& context : contexts_) {
      context->closeConnections();
    }
  }
};

std::shared_ptr<gloo::transport::Device> device_of(const Place& place) {
  if (place.one_node()) {
    return Gloo::createDeviceForInterface("lo");
  }
  if (const char* const name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0') {
    return Gloo::createDeviceForInterface(name);
  }
  return Gloo::createDeviceForHostname(local_address(place.meeting.host));
}

std::string name_of(const MeetingPoint& meeting) {
  return meeting.file.empty() ? fmt::format("{}:{}", meeting.host, meeting.port) : meeting.file;
}

c10::intrusive_ptr<Gloo> meet(const Place& place, Store& store, const GroupOptions& options) {
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.start);
  try {
    settings->devices.push_back(device_of(place));
  } catch (const std::exception& error) {
    refuse(store, fmt::format("rank {} of {} has no network to the others: {}; look at GLOO_SOCKET_IFNAME and "
                              "MASTER_ADDR",
                              place.rank, place.ranks, core::first_line(error)));
  }
  wait_for_all(place, store, options);
  auto group = c10::make_intrusive<Gloo>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store.get_torch()), place.rank,
                                         place.ranks, settings);
  group->setTimeout(options.timeout);
  return group;
}

// Some of the ranks, which know each other by the store of all.
c10::intrusive_ptr<Gloo> meet_part(const Place& place, Store& store, const GroupOptions& options,
                                   const std::string& prefix, const GroupMembers& members) {
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.start);
  settings->devices.push_back(device_of(place));
  auto own =
      c10::make_intrusive<c10d::PrefixStore>(prefix, c10::intrusive_ptr<c10d::Store>::reclaim_copy(store.get_torch()));
  auto group = c10::make_intrusive<Gloo>(own, members.own, static_cast<int>(members.ranks.size()), settings);
  group->setTimeout(options.timeout);
  return group;
}

// A short collective takes less time than it takes to wake a thread that sleeps (a sum of two numbers between two ranks
// on two cores, in Python: 125 us in this way, 172 us asleep). Others may run meanwhile.
void wait_without_sleep(c10d::Work& work) {
  constexpr auto kLongest = std::chrono::microseconds(200);
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while (!work.isCompleted() && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

std::vector<at::Tensor> room_for_all(const at::Tensor& tensor, int ranks) {
  std::vector<at::Tensor> room;
  for (int rank = 0; rank < ranks; ++rank) {
    room.push_back(at::empty_like(tensor, tensor.options(), at::MemoryFormat::Contiguous));
  }
  return room;
}

// The processes of all ranks, by rank.
std::vector<Member> processes_of(Gloo& gloo, int ranks) {
  constexpr std::size_t kBytes = 256;
  const std::string text = to_text(this_process(), kBytes - 1);
  std::vector<at::Tensor> mine{at::zeros({kBytes}, at::kByte)};
  std::ranges::copy(text, mine[0].mutable_data_ptr<std::uint8_t>());
  std::vector<std::vector<at::Tensor>> all{room_for_all(mine[0], ranks)};
  gloo.allgather(all, mine)->wait();
  std::vector<Member> members;
  for (const at::Tensor& each : all[0]) {
    members.push_back(member_from(reinterpret_cast<const char*>(each.const_data_ptr<std::uint8_t>())));
  }
  return members;
}

// All ranks, or some of them.
class ProcessGroup final : public core::Communicator {
 public:
  ProcessGroup(const Place& place, const GroupOptions& options)
      : place_(place),
        options_(options),
        store_(open_store(place, options)),
        gloo_(meet(place, *store_, options)),
        messages_(*gloo_, place.ranks),
        device_(std::make_shared<DeviceGroup>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store_->get_torch()),
                                              place.rank, place.ranks, options.timeout)),
        lifeline_(std::make_unique<Lifeline>(store_->clone(kStoreIsGone),
                                             LifelineOptions{place.rank, processes_of(*gloo_, place.ranks),
                                                             name_of(place.meeting), options.timeout, device_})) {}
  ProcessGroup(ProcessGroup& whole, const GroupMembers& members, const std::string& prefix)
      : place_(place_in(whole.place_, members)),
        options_(whole.options_),
        members_(members.ranks),
        whole_(&whole),
        counts_(place_.ranks == whole.place_.ranks),
        gloo_(meet_part(whole.place_, *whole.store_, options_, prefix, members)),
        messages_(*gloo_, place_.ranks) {}

  // The thread of the lifeline may live for a moment longer, and must not be the one that ends NCCL.
  ~ProcessGroup() override {
    if (device_) {
      lifeline_.reset();
      device_->end();
    }
  }
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.ranks; }
  [[nodiscard]] int size_here() const override { return place_.local_ranks; }
  [[nodiscard]] int rank_here() const override { return place_.local_rank; }

  void all_reduce_sum(at::Tensor& tensor) override { reduce(tensor, c10d::ReduceOp::SUM, Operation::kSum); }
  void all_reduce_max(at::Tensor& tensor) override { reduce(tensor, c10d::ReduceOp::MAX, Operation::kMax); }

  void broadcast(at::Tensor& tensor, int from) override {
    check_same(Operation::kBroadcast, tensor);
    std::vector<at::Tensor> tensors{tensor.contiguous()};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    run("broadcast", tensors[0], [&](c10d::Backend& group) { return group.broadcast(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    check_same(Operation::kGather, tensor);
    return exchange(tensor);
  }

  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& tensor) override {
    return gather("gathering", tensor);
  }

  void barrier() override {
    run("barrier", {}, [&](c10d::Backend& group) { return group.barrier(); });
  }

  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override {
    check_contiguous(tensor);
    auto sum = std::make_unique<Running>(*this);
    sum->tensors = {tensor};
    sum->start("sum", tensor, [&](c10d::Backend& group) { return group.allreduce(sum->tensors); });
    if (tensor.is_cpu()) {  // on a GPU the host does not hear of the end
      sum->time();
    }
    return sum;
  }

  [[nodiscard]] std::unique_ptr<Pending> start_exchange(const at::Tensor& tensor, at::Tensor& all) override {
    check_contiguous(tensor);
    if (!all.defined()) {
      all = at::empty({size(), tensor.numel()}, tensor.options());
    }
    auto gathering = std::make_unique<Running>(*this);
    gathering->tensors = {tensor.view({-1}), all.view({-1})};
    gathering->start("gathering", tensor, [&](c10d::Backend& group) {
      return group._allgather_base(gathering->tensors[1], gathering->tensors[0]);
    });
    return gathering;
  }

  [[nodiscard]] std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int to) override {
    return message([&] { return messages_.start_send(tensor, to); });
  }
  [[nodiscard]] std::unique_ptr<Pending> start_receive(at::Tensor& tensor, int from) override {
    return message([&] { return messages_.start_receive(tensor, from); });
  }

  [[nodiscard]] std::unique_ptr<Communicator> split(int group) override {
    if (whole_ != this) {
      fail<Error>(kWhere, "a part of the ranks cannot be split again; split all ranks");
    }
    const GroupMembers members = members_of(all_gather(at::full({1}, group, at::kLong)), rank());
    const std::string prefix = fmt::format("part/{}/{}", parts_.size(), group);
    auto part = members.ranks.size() == 1 ? nullptr : std::make_unique<ProcessGroup>(*this, members, prefix);
    parts_.push_back(part ? part->gloo_ : nullptr);
    return part ? std::unique_ptr<Communicator>(std::move(part)) : std::make_unique<core::SingleRank>();
  }

  void leave(const std::exception& error) override {
    try {
      whole_->device_->settle(kOnDevice);  // what the others need this rank for
    } catch (const std::exception&) {      // they hear of the error that came first
    }
    lifeline().leave(error);
    whole_->device_->cut_off();
    whole_->gloo_->close();
    for (const auto& part : whole_->parts_) {
      if (part) {
        part->close();
      }
    }
  }
  void settle() override { whole_->device_->settle(); }
  void keep_record_in(const std::filesystem::path& folder) override { lifeline().keep_record_in(folder); }
  [[nodiscard]] std::string trouble() const override { return whole_->lifeline_->trouble(); }

 private:
  enum class Operation : std::int64_t { kSum, kMax, kBroadcast, kGather };
  struct Work {
    std::int64_t place = 0;  // in the record
    c10::intrusive_ptr<c10d::Work> torch;
    bool on_device = false;
  };

  // A collective that Gloo's threads or a device make.
  class Running final : public Pending {
   public:
    explicit Running(ProcessGroup& group) : group_(group) {}
    ~Running() override {
      if (work_.torch) {
        try {
          wait();
        } catch (const std::exception&) {  // whoever drops it knows of an error already
        }
      }
    }
    template <typename Start>
    void start(std::string_view name, const at::Tensor& tensor, const Start& begin) {
      work_ = group_.begin(name, tensor, begin);
    }
    // After start().
    void time() {
      work_.torch->getFuture()->addCallback([ended = ended_](const auto&) { *ended = now_s(); });
    }
    void wait() override { group_.finish(std::exchange(work_, {})); }
    [[nodiscard]] double seconds() const override { return *ended_ > 0 ? *ended_ - began_ : -1; }

    std::vector<at::Tensor> tensors;  // Gloo's threads or a device use them

   private:
    ProcessGroup& group_;
    Work work_;
    const double began_ = now_s();
    const std::shared_ptr<std::atomic<double>> ended_ = std::make_shared<std::atomic<double>>(0);  // by Gloo's thread
  };

  [[nodiscard]] Lifeline& lifeline() { return *whole_->lifeline_; }

  static void check_contiguous(const at::Tensor& tensor) {
    if (!tensor.is_contiguous()) {
      fail<Error>(kWhere, "collectives beside other work take contiguous tensors; give a flat buffer");
    }
  }

  void reduce(at::Tensor& tensor, c10d::ReduceOp::RedOpType operation, Operation name) {
    check_same(name, tensor);
    std::vector<at::Tensor> tensors{tensor.contiguous()};
    c10d::AllreduceOptions options;
    options.reduceOp = operation;
    run(operation == c10d::ReduceOp::SUM ? "sum" : "maximum", tensors[0],
        [&](c10d::Backend& group) { return group.allreduce(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  static void put_back(at::Tensor& tensor, const at::Tensor& result) {
    if (!result.is_same(tensor)) {
      tensor.copy_(result);
    }
  }

  std::vector<at::Tensor> gather(std::string_view name, const at::Tensor& tensor) {
    std::vector<at::Tensor> inputs{tensor.contiguous()};
    std::vector<std::vector<at::Tensor>> outputs{room_for_all(inputs[0], size())};
    run(name, inputs[0], [&](c10d::Backend& group) { return group.allgather(outputs, inputs); });
    return outputs[0];
  }

  // Before each collective that no plan of a step has: torch ends the process if sizes differ.
  void check_same(Operation operation, const at::Tensor& tensor) {
    constexpr std::int64_t kFields = 3;
    at::Tensor mine = at::empty({kFields}, at::kLong);
    auto* const fields = mine.mutable_data_ptr<std::int64_t>();
    fields[0] = static_cast<std::int64_t>(operation);
    fields[1] = static_cast<std::int64_t>(tensor.scalar_type());
    fields[2] = tensor.numel();
    const std::vector<at::Tensor> all = gather("comparison", mine);
    for (std::size_t other = 0; other < all.size(); ++other) {
      const auto* const theirs = all[other].const_data_ptr<std::int64_t>();
      if (!std::equal(fields, fields + kFields, theirs)) {
        fail<Error>(kWhere, "ranks do not take the same steps: rank {} exchanges {}, but rank {} exchanges {}",
                    whole_->rank(), words(fields), members_.empty() ? static_cast<int>(other) : members_[other],
                    words(theirs));
      }
    }
  }

  static std::string words(const std::int64_t* fields) {
    static constexpr std::array kNames{"a sum", "a maximum", "a broadcast", "a gathering"};
    return fmt::format("{} of {} values of type {}", kNames[static_cast<std::size_t>(fields[0])], fields[2],
                       c10::toString(static_cast<at::ScalarType>(fields[1])));
  }

  // On the GPUs of the ranks.
  [[nodiscard]] DeviceGroup& device() {
    if (!counts_) {
      fail<Error>(kWhere, "a part of the ranks has no collectives on GPUs; give tensors on the host");
    }
    return *whole_->device_;
  }

  // Undefined tensor: without one.
  template <typename Start>
  Work begin(std::string_view name, const at::Tensor& tensor, const Start& start) {
    const std::int64_t place = lifeline().begin(name, tensor.defined() ? bytes_of(tensor) : -1, counts_);
    const device::BeyondCaps beyond;  // torch has counted the collective before it fails
    const bool on_device = tensor.defined() && !tensor.is_cpu();
    try {
      return {place, on_device ? device().start(start) : start(*gloo_), on_device};
    } catch (const Error&) {
      lifeline().end(place, /*failed=*/true);
      throw;
    } catch (const std::exception& error) {
      lifeline().end(place, /*failed=*/true);
      lifeline().explain(core::first_line(error));
    }
  }

  void finish(const Work& work) {
    try {
      if (!work.on_device) {
        wait_without_sleep(*work.torch);
      }
      work.torch->wait();
    } catch (const std::exception& error) {
      lifeline().end(work.place, /*failed=*/true);
      lifeline().explain(core::first_line(error));
    }
    lifeline().end(work.place);
  }

  // A message is not a collective that all take part in: who leaves need not wait for it.
  template <typename Start>
  std::unique_ptr<Pending> message(const Start& start) {
    lifeline().check();
    try {
      return std::make_unique<Message>(start(), options_.timeout, [this](std::int64_t bytes, const auto& wait) {
        const std::int64_t place = lifeline().begin("message", bytes, /*counts=*/false);
        try {
          wait();
        } catch (const std::exception& error) {  // its end is not recorded: this rank is one that waits
          lifeline().explain(core::first_line(error));
        }
        lifeline().end(place);
      });
    } catch (const std::exception& error) {
      lifeline().explain(core::first_line(error));
    }
  }

  template <typename Start>
  void run(std::string_view name, const at::Tensor& tensor, const Start& start) {
    finish(begin(name, tensor, start));
  }

  const Place place_;
  const GroupOptions options_;
  const std::vector<int> members_;    // ranks of a part; empty: all
  ProcessGroup* const whole_ = this;  // all ranks
  const bool counts_ = true;          // all ranks take part
  std::unique_ptr<Store> store_;      // of all ranks, as the next ones
  c10::intrusive_ptr<Gloo> gloo_;
  Messages messages_;
  std::vector<c10::intrusive_ptr<Gloo>> parts_;  // that this rank is in; null: alone
  std::shared_ptr<DeviceGroup> device_;          // of all ranks
  std::unique_ptr<Lifeline> lifeline_;           // the last: it hears of the others
};

// Gloo writes to connections that a rank which leaves has closed. A handler of the program stays.
void survive_closed_connections() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    ::signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

namespace {

// What torch reads of the environment, unless people have set it. Once, before there are threads of a group.
bool set_up_torch() {
  // Its own record of collectives costs time in each of them, is not written by Gloo, and has a race where the groups
  // of several threads begin (in the tests). After a timeout of NCCL it shall cut off the collectives, and not end the
  // process; who is missing is said by Lifeline, and not by torch's threads, which could wait for the store for ever.
  static constexpr std::array<std::pair<const char*, const char*>, 4> kSettings{
      {{"TORCH_FR_BUFFER_SIZE", "0"},
       {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "2"},
       {"TORCH_NCCL_ENABLE_MONITORING", "0"},
       {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0"}}};
  for (const auto& [name, value] : kSettings) {
    ::setenv(name, value, /*overwrite=*/0);
  }
  return true;
}

}  // namespace

std::shared_ptr<core::Communicator> join(const Place& place, const GroupOptions& options) {
  [[maybe_unused]] static const bool once = set_up_torch();
  survive_closed_connections();
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) {  // it logs what it throws, with addresses of its code
    FLAGS_caffe2_log_level = kLogNothing;
  }
  try {
    return std::make_shared<ProcessGroup>(place, options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail<ConfigError>(kWhere, "rank {} of {} cannot meet the others: {}", place.rank, place.ranks,
                      core::first_line(error));
  }
}

}  // namespace stoker::parallel
