// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/measured_choices.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/job/build_model.h"
#include "stoker/job/epoch_trial.h"
#include "stoker/job/recompute_search.h"
#include "stoker/job/setup.h"
#include "stoker/job/trials.h"
#include "stoker/job/wider_model.h"
#include "stoker/memory/microbatch.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/precision/policy.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/measure.h"

namespace stoker::job {
namespace {

// Precision, layout and threads of the plan: of a new run by timed trials, unless they are set.
void choose_speed(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                  const Say& say) {
  if (saved == nullptr) {
    StepTrials trials(setup, [&] { say("measuring the fastest precision, layout and threads ..."); });
    train::measure(setup.plan, request.options, facts, trials);
    setup.model->set_channels_last(setup.plan.layout == "channels_last");
  }
  if (setup.plan.half_weights) {
    precision::convert_to_half(setup.model->parameters(), setup.autocast_dtype());
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
}

// Takes a wider network if time= allows enough epochs of it: FLOPs propose one, and its own measured steps decide.
// `unmeasured` is the plan before trials, from which another network starts; `time` belongs to the current network.
// Returns the time of the network that is kept.
train::EpochTime take_wider(Setup& setup, const Request& request, const train::Facts& facts,
                            const train::Plan& unmeasured, const train::EpochTime& time, const Say& say) {
  const double epochs = train::epochs_in_time(setup.plan, facts.train_samples, time);
  const std::string wider = widest_that_fits(
      setup.plan.model, epochs, tasks::task_kind(setup.plan.task).info().models, [&](const std::string& model) {
        tasks::ModelRequest asked;
        asked.name = model;
        return static_cast<double>(setup.task->sample_flops(*setup.task->make_model(asked)));
      });
  if (wider.empty()) {
    return time;
  }
  train::Plan narrow_plan = std::exchange(setup.plan, unmeasured);
  auto narrow = std::move(setup.model);
  const std::int64_t narrow_flops = setup.sample_flops;
  at::set_num_threads(static_cast<int>(unmeasured.intra_op));
  setup.plan.model = wider;
  setup.model = build_model(setup);
  choose_speed(setup, request, facts, nullptr, say);
  train::EpochTime its_time = time_epoch(setup);
  // The images of the first trial are already decoded: their decoding time occurs once in this run too.
  its_time.first = std::max(its_time.first, its_time.later + time.first - time.later);
  const double fitting = train::epochs_in_time(setup.plan, facts.train_samples, its_time);
  if (fitting < kWidthPays) {
    setup.plan = std::move(narrow_plan);
    setup.model = std::move(narrow);
    setup.sample_flops = narrow_flops;
    at::set_num_threads(static_cast<int>(setup.plan.intra_op));
    return time;
  }
  train::decide(setup.plan, "model", wider, core::Origin::kMeasured,
                fmt::format("time={}s allows {:.0f} epochs of {}, or {:.0f} of this wider model", setup.plan.time,
                            epochs, narrow_plan.model, fitting));
  return its_time;
}

// Runs work, with smaller microbatches in the plan each time that memory runs out.
template <typename Work>
void in_microbatches_that_fit(Setup& setup, const Work& work) {
  memory::Microbatch policy({.asked = setup.plan.microbatch, .smallest = setup.couples_samples ? 2 : 1});
  while (true) {
    try {
      work();
      return;
    } catch (const std::exception& error) {
      memory::rethrow_unless_out_of_memory(error);
      device::backend_for(setup.device).release_cache(setup.device);
      const std::int64_t before = setup.plan.microbatch;
      if (!policy.shrink(setup.plan.batch)) {
        throw;
      }
      train::decide(setup.plan, "microbatch", std::to_string(policy.largest_pass(setup.plan.batch)),
                    core::Origin::kMeasured, fmt::format("{} samples per forward pass do not fit into memory", before));
    }
  }
}

// choose_speed() with as many samples as fit. recomputes: these are only those of trials, as recompute=auto then makes
// the plan's passes fit; if the smallest ones do not fit, all segments are recomputed in trials. One process cannot
// always compute the whole model that a pipeline trains: then nothing is measured.
void choose_speed_in_memory(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                            bool recomputes, const Say& say) {
  const train::Plan asked = setup.plan;
  const auto choose = [&](const train::Plan& unmeasured) {
    setup.plan = unmeasured;
    in_microbatches_that_fit(setup, [&] {
      const std::int64_t microbatch = setup.plan.microbatch;
      const train::Plan::Note why = setup.plan.notes.at("microbatch");
      setup.plan = unmeasured;
      train::decide(setup.plan, "microbatch", std::to_string(microbatch), why.origin, why.reason);
      choose_speed(setup, request, facts, saved, say);
    });
  };
  try {
    choose(asked);
  } catch (const std::exception& error) {
    const bool in_stages = asked.pipeline > 1;
    if (!(recomputes || in_stages) || setup.model->segments() == 1 || !memory::is_out_of_memory(error)) {
      throw;
    }
    if (in_stages) {
      setup.plan = asked;
      choose_speed(setup, request, facts, &asked, say);
      return;
    }
    train::Plan sparing = asked;
    train::decide(sparing, "recompute", "all", core::Origin::kMeasured, "for trials");
    choose(sparing);
  }
  if (recomputes || asked.pipeline > 1) {
    const train::Plan::Note& why = asked.notes.at("microbatch");
    train::decide(setup.plan, "microbatch", std::to_string(asked.microbatch), why.origin, why.reason);
  }
}

// An epoch is timed in one process, with the whole model.
train::EpochTime time_in_memory(Setup& setup) {
  try {
    return time_epoch(setup);
  } catch (const std::exception& error) {
    if (setup.plan.pipeline == 1 || !memory::is_out_of_memory(error)) {
      throw;
    }
    fail<ConfigError>("job.measure",
                      "time= is measured in one process, which cannot hold what the stages of pipeline={} "
                      "hold together; set epochs= or steps= too",
                      setup.plan.pipeline);
  }
}

}  // namespace

void make_choices(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                  const Say& say) {
  const train::Plan unmeasured = setup.plan;
  const bool recomputes = saved == nullptr && searches_recomputation(request.options);
  choose_speed_in_memory(setup, request, facts, saved, recomputes, say);
  const bool searches = saved == nullptr && searches_passes(request.options);
  const auto choose_memory = [&] {
    if (searches) {
      say("searching the samples per forward pass ...");
      setup.passes = choose_passes(setup, request, facts);
      const bool batch = setup.passes->sets_batch;
      say(fmt::format("{}={}, {}", batch ? "batch" : "microbatch", batch ? setup.plan.batch : setup.plan.microbatch,
                      setup.plan.notes.at(batch ? "batch" : "microbatch").reason));  // "auto: the fastest ..."
    }
    if (recomputes) {
      say("choosing what to recompute ...");
      choose_recomputation(setup);
      say("recompute=" + setup.plan.notes.at("recompute").reason);  // "auto: a pass of ..."
    }
  };
  choose_memory();
  if (saved != nullptr || !train::has_time_budget(setup.plan, request.options)) {
    return;
  }
  say("measuring how many epochs fit into time= ...");
  train::EpochTime time = time_in_memory(setup);
  if (request.options.find("model") == nullptr && setup.plan.weights.empty()) {
    const std::string narrow = setup.plan.model;
    time = take_wider(setup, request, facts, unmeasured, time, say);
    if (setup.plan.model != narrow) {  // another network needs another memory
      choose_memory();
    }
  }
  train::fit_time(setup.plan, facts.train_samples, time);
}

}  // namespace stoker::job
