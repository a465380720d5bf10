// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/profile_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/core/communicator.h"
#include "stoker/job/profile_json.h"
#include "stoker/job/session.h"
#include "stoker/observe/profile/ceilings.h"
#include "stoker/observe/profile/host_code.h"
#include "stoker/observe/profile/profile_table.h"
#include "stoker/train/profile_steps.h"

namespace stoker::job {
namespace {

namespace profile = observe::profile;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? -1 : values[values.size() / 2];
}

}  // namespace

ProfileWatch::ProfileWatch(const Setup& setup, std::filesystem::path folder, core::EventEmitter& events,
                           ProfileOrders& orders)
    : setup_(setup), folder_(std::move(folder)), events_(events), orders_(orders) {
  if (!setup.plan.profile.empty() && setup.ranks->rank() == 0) {
    const train::ProfileSteps steps = train::parse_profile(setup.plan.profile);
    planned_first_ = steps.first;
    planned_steps_ = steps.steps;
  }
}

ProfileWatch::~ProfileWatch() = default;

double ProfileWatch::step_done(std::int64_t done, std::int64_t samples) {
  const double now = now_s();
  if (state_ == State::kIdle && last_ >= 0) {
    before_[steps_before_++ % before_.size()] = now - last_;
  }
  if (++here_ == 1 && done >= planned_first_ + planned_steps_) {
    planned_steps_ = 0;  // a run that was resumed behind them
  }
  samples_ = samples;
  try {
    if (state_ == State::kIdle) {
      look(done);
    } else {
      next(done);
    }
  } catch (const std::exception& error) {
    failure_ = std::current_exception();
    give_up(error.what());
  }
  last_ = now_s();
  return last_ - now;
}

// A profile may begin: planned, if the recorder must warm up now to be ready for its first step, or ordered.
void ProfileWatch::look(std::int64_t done) {
  if (here_ < kWarmUp) {
    return;
  }
  if (planned_steps_ > 0 && done + profile::Recorder::kWarmUp + 1 >= planned_first_) {
    begin(std::exchange(planned_steps_, 0), /*ordered=*/false);
  } else if (const auto ordered = orders_.take()) {
    begin(*ordered, /*ordered=*/true);
  }
}

void ProfileWatch::begin(std::int64_t steps, bool ordered) {
  ordered_ = ordered;
  wanted_ = steps;
  recorded_ = 0;
  recorder_.emplace(setup_.device);
  warm_ = profile::Recorder::kWarmUp;
  state_ = State::kWarm;
}

void ProfileWatch::next(std::int64_t done) {
  if (state_ == State::kWarm) {
    if (--warm_ > 0) {
      return;
    }
    recorder_->start();
    sampler_.emplace();  // after start(), whose own work is no step's
    recorder_->begin_step(done + 1);
    first_ = done + 1;
    state_ = State::kRecording;
    return;
  }
  recorder_->end_step();
  ++recorded_;
  if (ordered_) {
    orders_.recorded(recorded_, wanted_);
  }
  if (recorded_ == wanted_) {
    end();
  } else {
    recorder_->begin_step(done + 1);
  }
}

void ProfileWatch::end() {
  const double began = now_s();
  const std::vector<profile::HostSample> samples = sampler_->stop();
  std::filesystem::path trace = only_trace_;
  if (trace.empty()) {
    std::filesystem::create_directories(folder_);
    trace = folder_ / fmt::format("step-{}.pt.trace.json.gz", first_);
  }
  profile::Recorded recorded = recorder_->finish(trace);
  profile::keep_steps(recorded, static_cast<std::size_t>(recorded_));  // the run may end within the next one
  recorder_.reset();
  state_ = State::kIdle;
  write(recorded, profile::host_code(samples), began);
}

void ProfileWatch::write(const profile::Recorded& recorded, const profile::HostCode& code, double began) {
  profile::ProfileTable table = profile::profile_table(recorded, setup_.device.is_cuda());
  const profile::Ceilings ceilings = profile::measure_ceilings(setup_.device, profile::product_types(table));
  profile::compare(table, ceilings);
  ProfileFacts facts;
  facts.title = run_title(setup_);
  facts.device = setup_.device.str();
  facts.first_step = first_;
  facts.samples = samples_;
  facts.usual_seconds = usual_seconds();
  std::vector<double> steps;
  for (const std::int64_t each : recorded.steps_ns) {
    steps.push_back(1e-9 * static_cast<double>(each));
  }
  facts.step_seconds = median(steps);
  if (setup_.device.is_cuda() && !table.on_device) {
    facts.notes.emplace_back("no work of the GPU was recorded: CUPTI is missing or in use; times are the host's");
  }
  if (!sampler_->missing().empty()) {
    facts.notes.push_back(sampler_->missing());
  }
  if (sampler_->full()) {
    facts.notes.push_back(fmt::format("host code shows only the beginning of the profile: its first {} samples",
                                      profile::HostSampler::kMost));
  }
  for (std::string& note : notes_ ? notes_() : std::vector<std::string>()) {
    facts.notes.push_back(std::move(note));
  }
  const std::string name = fmt::format("step-{}", first_);
  facts.trace = only_trace_.empty() ? (folder_ / (name + ".pt.trace.json.gz")).native() : only_trace_.native();
  facts.trace = printable(facts.trace);
  facts.pause_seconds = now_s() - began;
  record_ = profile_json(facts, table, ceilings, code);
  if (only_trace_.empty()) {
    const std::filesystem::path file = folder_ / (name + ".json");
    write_file_atomically(file, record_);
    const std::string in_run = (folder_.filename() / file.filename()).native();
    events_.emit(core::Artifact{first_, "profile of " + counted(table.steps, "step"), in_run});
    if (ordered_) {
      orders_.done(in_run);
    }
  } else {
    orders_.done("");
  }
}

void ProfileWatch::finish() {
  if (state_ == State::kRecording && recorded_ > 0) {
    try {
      end();
    } catch (const std::exception& error) {
      failure_ = std::current_exception();
      give_up(error.what());
    }
  } else if (state_ != State::kIdle || (planned_steps_ > 0 && here_ > 0)) {
    give_up("the training ended before its steps");
  }
  orders_.failed("the training ended before it took a profile");
}

void ProfileWatch::give_up(const std::string& why) {
  recorder_.reset();
  sampler_.reset();
  state_ = State::kIdle;
  if (only_trace_.empty()) {
    events_.emit(core::Finding{fmt::format("there is no profile: {}", why)});
  }
  if (ordered_) {
    orders_.failed(why);
  }
}

double ProfileWatch::usual_seconds() const {
  constexpr std::size_t kFewest = 8;  // the first steps of a process are slower
  const std::size_t size = std::min(steps_before_, before_.size());
  if (size < kFewest) {
    return -1;
  }
  return median({before_.begin(), before_.begin() + static_cast<std::ptrdiff_t>(size)});
}

}  // namespace stoker::job
