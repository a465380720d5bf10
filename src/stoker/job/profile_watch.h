// SPDX-License-Identifier: Apache-2.0
// Takes profiles of a training: of the steps that profile= names, and of the next ones when someone asks. Called by
// job::Run and UntrackedSteps on the loop's thread, between steps; a few nanoseconds per step while there is none.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/events.h"
#include "stoker/job/profile_orders.h"
#include "stoker/job/setup.h"
#include "stoker/observe/profile/host_code.h"
#include "stoker/observe/profile/host_sampler.h"
#include "stoker/observe/profile/recorder.h"

namespace stoker::job {

class ProfileWatch {
 public:
  // Steps of this process before a profile: kernels are chosen and built, caches and moments exist, memory is recorded.
  static constexpr std::int64_t kWarmUp = 3;
  // Steps of this process that end before one is recorded: those, and some while the profiler warms up.
  static constexpr std::int64_t kBefore = kWarmUp + observe::profile::Recorder::kWarmUp;

  // folder: gets step-N.pt.trace.json.gz and the record step-N.json (docs/observe-profile.md).
  ProfileWatch(const Setup& setup, std::filesystem::path folder, core::EventEmitter& events, ProfileOrders& orders);
  ~ProfileWatch();

  using Notes = std::function<std::vector<std::string>()>;
  // The trace goes to this file instead, the record nowhere, and an error is no Finding but a failure(). notes: for the
  // record, asked for when it is made.
  void write_only(std::filesystem::path trace, Notes notes) {
    only_trace_ = std::move(trace);
    notes_ = std::move(notes);
  }
  // After each step; done: steps of the whole run. Returns the seconds that it took for itself and that are not the
  // step's. An error of the profiler is a Finding and ends no training, nor a later profile.
  double step_done(std::int64_t done, std::int64_t samples);
  // Whether a profile is being taken.
  [[nodiscard]] bool active() const { return state_ != State::kIdle; }
  // After the last step: an unfinished profile is written with the steps it has.
  void finish();
  // Why there is no profile: the newest error; null: none.
  [[nodiscard]] const std::exception_ptr& failure() const { return failure_; }
  // The newest record as JSON; empty: none.
  [[nodiscard]] const std::string& record() const { return record_; }

 private:
  enum class State { kIdle, kWarm, kRecording };
  void look(std::int64_t done);
  void begin(std::int64_t steps, bool ordered);
  void next(std::int64_t done);
  void end();
  void write(const observe::profile::Recorded& recorded, const observe::profile::HostCode& code, double began);
  void give_up(const std::string& why);
  [[nodiscard]] double usual_seconds() const;

  const Setup& setup_;
  std::filesystem::path folder_, only_trace_;
  Notes notes_;
  core::EventEmitter& events_;
  ProfileOrders& orders_;
  std::int64_t planned_first_ = 0, planned_steps_ = 0;  // by profile=; 0: none, or taken
  State state_ = State::kIdle;
  bool ordered_ = false;  // the profile that is being taken is one of orders_, and not the planned one
  std::optional<observe::profile::Recorder> recorder_;
  std::optional<observe::profile::HostSampler> sampler_;
  std::int64_t here_ = 0;      // steps of this process
  std::int64_t warm_ = 0;      // steps that the recorder still warms up
  std::int64_t wanted_ = 0;    // steps of the profile
  std::int64_t recorded_ = 0;  // of them
  std::int64_t first_ = 0;     // counted from 1
  std::int64_t samples_ = 0;
  std::array<double, 16> before_{};  // seconds of the newest steps without a profile, a ring
  std::size_t steps_before_ = 0;     // that were ever put there
  double last_ = -1;                 // when the step before ended
  std::string record_;
  std::exception_ptr failure_;
};

}  // namespace stoker::job
