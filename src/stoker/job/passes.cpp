// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/passes.h"

#include <algorithm>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/recompute_search.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job.passes";
using core::Origin;
// batch=auto: optimizer steps that an epoch has at least; fewer would not train.
constexpr std::int64_t kLeastSteps = 10;

// Samples of the largest of the even passes over the batch.
std::int64_t even_pass(std::int64_t batch, std::int64_t microbatch) {
  const std::int64_t passes = (batch + microbatch - 1) / microbatch;
  return (batch + passes - 1) / passes;
}

// Sets the value that `apply` puts into the plan: `wanted`, or a little less or one more if batch norm could not train
// on a last pass of one sample.
template <typename Apply>
void settle(Setup& setup, const Request& request, const train::Facts& facts, std::int64_t wanted, std::int64_t largest,
            const Apply& apply) {
  for (const std::int64_t each : {wanted, wanted - 1, wanted - 2, wanted + 1}) {
    if (each < 1 || each > largest) {
      continue;
    }
    apply(each);
    if (!train::couples_samples(setup.plan, facts) || train::smallest_pass(setup.plan, facts.train_samples) > 1) {
      return;
    }
  }
  apply(wanted);
  train::choose_tail(setup.plan, request.options, facts);
}

void set_microbatch(Setup& setup, const Request& request, const train::Facts& facts, const PassChoice& choice) {
  const memory::Found& found = choice.found;
  const std::string reason = fmt::format("auto: {} ({} probes); the largest that fits is {}: {}", found.chosen_reason,
                                         found.probes.size(), found.largest, found.largest_reason);
  settle(setup, request, facts, even_pass(choice.batch, found.chosen), found.largest, [&](std::int64_t microbatch) {
    train::decide(setup.plan, "microbatch", std::to_string(microbatch), Origin::kMeasured, reason);
  });
}

void set_batch(Setup& setup, const Request& request, const train::Facts& facts, PassChoice& choice) {
  const memory::Found& found = choice.found;
  train::Plan& plan = setup.plan;
  const std::int64_t ranks = setup.ranks->size();
  const double lr_before = plan.peak_lr();
  const std::int64_t batch_before = plan.batch;
  settle(setup, request, facts, found.chosen, found.largest, [&](std::int64_t pass) {
    train::decide(plan, "batch", std::to_string(pass * ranks), Origin::kMeasured, "");
    train::decide(plan, "microbatch", std::to_string(pass * ranks), Origin::kMeasured, "the whole batch");
  });
  choice.lr_note = plan.lr_scale == "none"
                       ? fmt::format("lr_scale=none keeps the learning rate at {:.3g}", plan.peak_lr())
                       : fmt::format("lr_scale={} takes the peak learning rate from {:.3g} (batch {}) to {:.3g}",
                                     plan.lr_scale, lr_before, batch_before, plan.peak_lr());
  plan.notes["batch"].reason =
      fmt::format("auto: {} ({} probes); the largest that fits is {}: {}; {}", found.chosen_reason, found.probes.size(),
                  found.largest * ranks, found.largest_reason, choice.lr_note);
}

[[noreturn]] void fail_to_fit(const Setup& setup, const PassChoice& choice) {
  fail<OutOfMemory>(kWhere, "{}: a forward pass of {} does not fit{}; {}",
                    choice.sets_batch ? "batch=auto" : "microbatch=auto",
                    counted(choice.found.probes.front().samples, "sample"),
                    choice.limit < 0 ? "" : fmt::format(" into the {} that are left", bytes_text(choice.limit)),
                    memory_advice(setup, held_by_run(setup), /*searches_passes=*/true));
}

}  // namespace

bool searches_passes(const train::Options& options) {
  return options.is_auto("batch") || options.is_auto("microbatch");
}

void check_search(const train::Options& options) {
  if (searches_recomputation(options)) {
    if (searches_passes(options)) {
      fail<ConfigError>(
          kWhere,
          "recompute=auto makes the given passes fit, {0}=auto changes them; remove recompute=auto, or set "
          "{0}= to a number",
          options.is_auto("batch") ? "batch" : "microbatch");
    }
    if (!options.text_or("microbatch_schedule", "").empty()) {
      fail<ConfigError>(kWhere,
                        "microbatch_schedule= repeats the passes of another run, so recompute=auto has nothing to make "
                        "fit; remove one of them");
    }
  }
  if (options.is_auto("batch") && options.find("microbatch") != nullptr) {
    fail<ConfigError>(kWhere, "batch=auto finds the batch that one forward pass computes; remove microbatch={}",
                      options.find("microbatch")->value);
  }
  if (searches_passes(options) && !options.text_or("microbatch_schedule", "").empty()) {
    fail<ConfigError>(kWhere,
                      "microbatch_schedule= repeats the passes of another run; remove it, or set batch= and "
                      "microbatch= to numbers");
  }
}

PassChoice choose_passes(Setup& setup, const Request& request, const train::Facts& facts) {
  PassChoice choice;
  choice.sets_batch = request.options.is_auto("batch");
  {
    StepProbes probes(setup, choice.sets_batch);
    choice.batch = probes.batch();
    choice.held = probes.held();
    choice.limit = probes.limit();
    memory::FinderOptions options;
    options.smallest = setup.couples_samples ? 2 : 1;
    options.most = choice.sets_batch
                       ? std::max(options.smallest, facts.train_samples / setup.ranks->size() / kLeastSteps)
                       : choice.batch;
    options.most_reason = choice.sets_batch ? fmt::format("an epoch keeps at least {} steps", kLeastSteps)
                                            : "the whole batch; batch=auto tries larger ones";
    options.limit = choice.limit;
    options.smaller_wins = choice.sets_batch;
    choice.found = memory::find_batch(probes, options);
  }
  if (choice.found.largest == 0) {
    fail_to_fit(setup, choice);
  }
  if (choice.sets_batch) {
    set_batch(setup, request, facts, choice);
  } else {
    set_microbatch(setup, request, facts, choice);
  }
  return choice;
}

}  // namespace stoker::job
