// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/ranks.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/job/opened_data.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/saved_plan.h"
#include "stoker/parallel/place.h"
#include "stoker/parallel/process_group.h"
#include "stoker/parallel/siblings.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job.ranks";
constexpr double kLeastTimeout = 1;  // seconds

void check_number(const parallel::Place& place, std::int64_t asked) {
  if (asked != 0 && asked != place.ranks) {
    fail<ConfigError>(kWhere, "ranks={}, but {} started {}; remove ranks=, or start {} of them", asked, place.starter,
                      place.ranks, asked);
  }
}

// For device=cuda:all.
int gpus_here() {
  const device::Backend* const backend = device::find_backend(c10::DeviceType::CUDA);
  if (backend == nullptr || backend->device_count() == 0) {
    fail<ConfigError>(kWhere, "device={}, but no GPU can be used here: {}; set device=cpu", kAllGpus,
                      backend == nullptr ? device::missing_reason(c10::DeviceType::CUDA) : "there is none");
  }
  return backend->device_count();
}

}  // namespace

struct Ranks::State {
  core::SingleRank alone;
  std::optional<parallel::Siblings> siblings;
  std::shared_ptr<core::Communicator> communicator;  // gone before the siblings are waited for
  bool first = true;
  bool started_again = false;
  std::string reason;  // who started them
  Start start;
};

Ranks::Ranks(Request& request, Say say) : state_(std::make_unique<State>()) {
  const train::Options::Given* const given = request.options.find("ranks");
  const train::Options::Given* const timeout = request.options.find("rank_timeout");
  const bool repeats = !request.plan_file.empty() && request.options.all().empty();  // else the job refuses it
  const train::Plan plan = repeats ? read_plan(request.plan_file) : train::Plan();
  const train::Options::Given* const stages = request.options.find("pipeline");
  const int gpus = request.options.text_or("device", "") == kAllGpus ? gpus_here() : 0;
  const std::int64_t planned = stages != nullptr && std::stoll(stages->value) > 1 ? std::stoll(stages->value)
                               : gpus > 0                                         ? gpus
                                                                                  : plan.ranks;
  join(given != nullptr ? std::stoll(given->value) : 0, planned,
       timeout != nullptr ? std::stod(timeout->value) : plan.rank_timeout, std::move(say), gpus);
  request.ranks = state_->communicator;
  request.ranks_reason = state_->reason;
  request.start = state_->start;
}

Ranks::Ranks(const std::filesystem::path& run, const std::vector<std::string>& changes, Say say)
    : state_(std::make_unique<State>()) {
  train::Plan plan = read_plan(RunFolder::open(run).plan());
  for (const std::string& change : changes) {
    change_plan(plan, change);
  }
  const bool asked = std::ranges::any_of(changes, [](const std::string& each) { return each.starts_with("ranks="); });
  join(asked ? plan.ranks : 0, plan.ranks, plan.rank_timeout, std::move(say));
}

Ranks::Ranks(int ranks, Say say) : state_(std::make_unique<State>()) {
  join(0, ranks, train::Plan().rank_timeout, std::move(say));
}

core::Communicator& Ranks::all() const {
  return state_->communicator ? *state_->communicator : static_cast<core::Communicator&>(state_->alone);
}

// asked: the value of ranks=; 0: not set. planned: without it, if no starter made ranks. timeout: seconds. gpus: of
// this machine, one for each rank that is started here; 0: none.
void Ranks::join(std::int64_t asked, std::int64_t planned, double timeout, Say say, int gpus) {
  if (timeout < kLeastTimeout) {
    fail<ConfigError>(kWhere, "rank_timeout must be at least {} s, got {}", kLeastTimeout, timeout);
  }
  std::optional<parallel::Place> place = parallel::place_of(parallel::process_environment());
  if (place) {
    parallel::end_with_starter();
    check_number(*place, asked);
    state_->start = {place->starter != "ranks=", place->restarts > 0, place->start_id};
    state_->started_again = place->restarts_all;
  } else if (const std::int64_t ranks = asked != 0 ? asked : planned; ranks > 1) {
    if (gpus > 0 && ranks > gpus) {
      fail<ConfigError>(
          kWhere, "ranks={} with device={}, but this machine has {}, and two ranks cannot train on one; set ranks={}",
          ranks, kAllGpus, counted(gpus, "GPU"), gpus);
    }
    place = state_->siblings.emplace(static_cast<int>(ranks)).place();
  }
  if (!place || place->ranks == 1) {
    return;
  }
  state_->first = place->rank == 0;
  state_->reason = place->starter == "ranks=" ? "asked for" : fmt::format("started by {}", place->starter);
  parallel::GroupOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  options.say = std::move(say);
  if (state_->siblings) {
    options.while_waiting = [siblings = &*state_->siblings] { siblings->check(); };
  }
  state_->communicator = parallel::join(*place, options);
}

Ranks::~Ranks() = default;

const std::shared_ptr<core::Communicator>& Ranks::communicator() const { return state_->communicator; }
bool Ranks::first() const { return state_->first; }
bool Ranks::started_again() const { return state_->started_again; }

}  // namespace stoker::job
