// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/ranks.h"

#include <algorithm>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/saved_plan.h"
#include "stoker/parallel/place.h"
#include "stoker/parallel/process_group.h"
#include "stoker/parallel/siblings.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job.ranks";

void check_number(const parallel::Place& place, std::int64_t asked) {
  if (asked != 0 && asked != place.ranks) {
    fail<ConfigError>(kWhere, "ranks={}, but {} started {}; remove ranks=, or start {} of them", asked, place.starter,
                      place.ranks, asked);
  }
}

}  // namespace

struct Ranks::State {
  std::optional<parallel::Siblings> siblings;
  std::shared_ptr<core::Communicator> communicator;  // gone before the siblings are waited for
  bool first = true;
  std::string reason;  // who started them
};

Ranks::Ranks(Request& request) : state_(std::make_unique<State>()) {
  const train::Options::Given* const given = request.options.find("ranks");
  const bool repeats = !request.plan_file.empty() && request.options.all().empty();  // else the job refuses it
  join(given != nullptr ? std::stoll(given->value) : 0, repeats ? read_plan(request.plan_file).ranks : 1);
  request.ranks = state_->communicator;
  request.ranks_reason = state_->reason;
}

Ranks::Ranks(const std::filesystem::path& run, const std::vector<std::string>& changes)
    : state_(std::make_unique<State>()) {
  train::Plan plan = read_plan(RunFolder::open(run).plan());
  for (const std::string& change : changes) {
    change_plan(plan, change);
  }
  const bool asked = std::ranges::any_of(changes, [](const std::string& each) { return each.starts_with("ranks="); });
  join(asked ? plan.ranks : 0, plan.ranks);
}

// asked: the value of ranks=; 0: not set. planned: without it, if no starter made ranks.
void Ranks::join(std::int64_t asked, std::int64_t planned) {
  std::optional<parallel::Place> place = parallel::place_of(parallel::process_environment());
  if (place) {
    parallel::end_with_starter();
    check_number(*place, asked);
  } else if (const std::int64_t ranks = asked != 0 ? asked : planned; ranks > 1) {
    place = state_->siblings.emplace(static_cast<int>(ranks)).place();
  }
  if (!place || place->ranks == 1) {
    return;
  }
  state_->first = place->rank == 0;
  state_->reason = place->starter == "ranks=" ? "asked for" : fmt::format("started by {}", place->starter);
  parallel::GroupOptions options;
  if (state_->siblings) {
    options.while_waiting = [siblings = &*state_->siblings] { siblings->check(); };
  }
  state_->communicator = parallel::join(*place, options);
}

Ranks::~Ranks() = default;

const std::shared_ptr<core::Communicator>& Ranks::communicator() const { return state_->communicator; }
bool Ranks::first() const { return state_->first; }

}  // namespace stoker::job
