// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/resolve.h"

#include <algorithm>
#include <optional>

#include "stoker/base/error.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.resolve";
using core::Origin;

void put(Plan& plan, std::string_view key, std::string_view value, Origin origin, std::string reason) {
  set_value(plan, key, value);
  plan.notes.insert_or_assign(std::string(key), Plan::Note{origin, std::move(reason)});
}

// The values that no recipe sets: what depends on model or data stands in the task's recipe (tasks/image_recipe.cpp).
void put_general_defaults(Plan& plan, const Facts& facts) {
  const auto put_default = [&](std::string_view key, std::string_view value, std::string reason) {
    put(plan, key, value, Origin::kDefault, std::move(reason));
  };
  const bool cuda = facts.device.starts_with("cuda");
  put_default("task", facts.task, facts.task_reason);
  put_default("weights", "", "from scratch");
  put_default("freeze", "0", "every segment is trained");
  put_default("steps", "0", "as the epochs make them");
  put_default("time", "0", "no limit");
  put_default("seed", std::to_string(kDefaultSeed), "fixed, so that a run repeats");
  put_default("optimizer.momentum", "0.9", "the usual for sgd");
  put_default("optimizer.nesterov", "on", "costs nothing and converges faster");
  put_default("optimizer.beta1", "0.9", "Kingma and Ba, 2015");
  put_default("optimizer.beta2", "0.999", "Kingma and Ba, 2015");
  put_default("optimizer.eps", "1e-08", "Kingma and Ba, 2015");
  put_default("lr_end", "0", "the schedule comes down to 0");
  put_default("schedule_steps", "0", "as long as the run");
  put_default("ema", "0", "off");
  put_default("clip", "0", "off");
  put_default("early_stop", "0", "off");
  put_default("eval_every", "0", "once an epoch");
  put_default("save_every", "0", "once an epoch");
  put_default("skip_limit", "10", "a scaler settles within a few; more is a diverged run");
  put_default("val", fmt::format("{}", kDefaultVal), "used where there is no validation split");
  put_default("tail", "keep", "every sample once an epoch");
  put_default("device", facts.device, facts.device_reason);
  put_default("precision", "fp32", "not measured");
  put_default("half_weights", "off", "weights in fp32 are cast where they are used");
  put_default("threads", "0", "not measured");
  put_default("intra_op", std::to_string(facts.cores), fmt::format("{} cores, none of them loads data", facts.cores));
  put_default("layout", "channels_last", "what GPUs and long steps want; not measured");
  put_default("tf32", "on", "10 bits of mantissa are enough for training; CUDA only");
  put_default("cudnn_benchmark", "on", "shapes are fixed");
  put_default("deterministic", cuda ? "off" : "on", cuda ? "atomics are faster" : "costs nothing on the CPU");
  put_default("anomaly", "off", "for looking for a fault");
  put_default("tensorboard", "on", "under 4 MB for a million steps");
  put_default("nvtx", "off", "for runs under a profiler");
}

void put_asked(Plan& plan, const Options& options) {
  for (const auto& [key, asked] : options.all()) {
    put(plan, key, asked.value, asked.origin, "asked for");
  }
}

void settle_batch(Plan& plan, const Options& options, const Facts& facts) {
  if (plan.batch > facts.train_samples) {
    if (options.find("batch") != nullptr) {
      fail<ConfigError>(kWhere, "batch {} is larger than the {} training samples; set batch={} or less", plan.batch,
                        facts.train_samples, facts.train_samples);
    }
    put(plan, "batch", std::to_string(facts.train_samples), Origin::kDefault, "all training samples");
  }
  if (options.find("microbatch") == nullptr) {
    put(plan, "microbatch", std::to_string(plan.batch), Origin::kDefault, "the batch fits as it is");
  } else if (plan.microbatch > plan.batch) {
    fail<ConfigError>(kWhere, "microbatch {} is larger than batch {}", plan.microbatch, plan.batch);
  }
  if (options.find("lr_scale") == nullptr) {
    const bool sgd = plan.optimizer == "sgd";
    put(plan, "lr_scale", sgd ? "linear" : "sqrt", Origin::kDefault, sgd ? "sgd's noise" : "adaptive steps");
  }
}

// The smallest of the even microbatches that samples are cut into.
std::int64_t smallest_part(std::int64_t samples, std::int64_t microbatch) {
  const std::int64_t parts = (samples + microbatch - 1) / microbatch;
  return samples / parts;
}

// Batch norm cannot train on one sample alone, neither as a tail nor as a microbatch.
void settle_tail(Plan& plan, const Options& options, const Facts& facts) {
  if (!facts.couples_samples) {
    return;
  }
  if (smallest_part(plan.batch, plan.microbatch) < 2) {
    fail<ConfigError>(
        kWhere,
        "{} has batch norm, which cannot train on 1 sample at a time, as batch={} microbatch={} would; set "
        "both to 2 or more",
        plan.model, plan.batch, plan.microbatch);
  }
  if (smallest_pass(plan, facts.train_samples) > 1) {
    return;
  }
  if (options.find("tail") != nullptr) {
    fail<ConfigError>(kWhere,
                      "{} samples in batches of {} end in a forward pass of 1 sample, which batch norm cannot train "
                      "on; set tail=drop",
                      facts.train_samples, plan.batch);
  }
  put(plan, "tail", "drop", Origin::kAdvice, "it would end in a forward pass of 1 sample, too few for batch norm");
}

struct Timed {
  Candidate how;
  double seconds = 0;  // a sample
};

// Noise does not choose: what is later in the fixed order must win clearly.
Timed faster(const Timed& simpler, const Timed& other) {
  return other.seconds < simpler.seconds * (1 - kTie) ? other : simpler;
}

// Precision and layout together: the fastest pair of those that nobody fixed.
void measure_arithmetic(Plan& plan, bool free_precision, bool free_layout, int intra_op, Trials& trials) {
  free_layout = free_layout && plan.device == "cpu" && trials.layouts_can_be_tried();
  if (!free_precision && !free_layout) {
    return;
  }
  const auto precisions = free_precision ? std::vector<std::string>{"fp32", "bf16"} : std::vector{plan.precision};
  const auto layouts = free_layout ? std::vector<std::string>{"channels_last", "contiguous"} : std::vector{plan.layout};
  std::vector<Candidate> candidates;
  for (const std::string& layout : layouts) {
    for (const std::string& precision : precisions) {
      candidates.push_back({precision, layout, intra_op});
    }
  }
  const std::vector<double> seconds = trials.step_seconds_per_sample(candidates);
  const auto timed = [&](std::size_t precision, std::size_t layout) {
    const std::size_t i = layout * precisions.size() + precision;
    return Timed{candidates[i], seconds[i]};
  };
  std::vector<Timed> by_precision;
  for (std::size_t i = 0; i < precisions.size(); ++i) {
    by_precision.push_back(free_layout ? faster(timed(i, 0), timed(i, 1)) : timed(i, 0));
  }
  const Timed best = faster(by_precision.front(), by_precision.back());
  if (free_precision) {
    put(plan, "precision", best.how.precision, Origin::kMeasured,
        fmt::format("a sample takes {:.3g} ms in fp32, {:.3g} ms in bf16", by_precision[0].seconds * 1e3,
                    by_precision[1].seconds * 1e3));
  }
  if (free_layout) {
    const std::size_t chosen = best.how.precision == precisions.front() ? 0 : 1;
    put(plan, "layout", best.how.layout, Origin::kMeasured,
        fmt::format("a sample takes {:.3g} ms in channels_last, {:.3g} ms in contiguous, both in {}",
                    timed(chosen, 0).seconds * 1e3, timed(chosen, 1).seconds * 1e3, best.how.precision));
  }
}

// Seconds of a sample. Threads beside the step become more than were planned where a disk is waited for
// (data::ThreadGovernor), but no more of them compute at a time.
double load_and_step(const core::LoadTime& load, double step, int threads, int intra_op) {
  if (threads == 0) {
    return load.seconds / intra_op + step;
  }
  const int most = threads + (load.worth_readers() ? core::kMostReaders : 0);
  return std::max({(load.seconds - load.asleep) / threads, load.seconds / most, step});
}

// Loading between steps (0 threads) on the step's threads against loading beside them on cores that the step then
// lacks.
void measure_threads(Plan& plan, bool free_intra_op, const Facts& facts, Trials& trials) {
  const core::LoadTime load_time = trials.load_time_per_sample();
  const double load = load_time.seconds;
  const auto put_threads = [&](int threads, Origin origin, const std::string& reason) {
    put(plan, "threads", std::to_string(threads), origin, load > 0 ? reason : "the samples lie in memory");
  };
  if (plan.device != "cpu") {
    put_threads(load > 0 ? std::max(1, facts.cores - 1) : 0, Origin::kDefault, "the GPU computes, the cores load");
    put(plan, "intra_op", "1", Origin::kDefault, "the GPU computes, the cores load");
    return;
  }
  std::vector<Candidate> candidates;  // the i-th beside i loader threads
  for (int threads = 0; threads < std::max(1, std::min(facts.cores, 5)); ++threads) {
    const int intra_op = free_intra_op ? std::max(1, facts.cores - threads) : static_cast<int>(plan.intra_op);
    if (threads > 0 && intra_op + threads > facts.cores) {
      break;
    }
    candidates.push_back({plan.precision, plan.layout, intra_op});
  }
  std::vector<double> steps = trials.step_seconds_per_sample(
      free_intra_op ? candidates : std::vector{candidates.front()});  // else they all compute alike
  steps.resize(candidates.size(), steps.front());
  std::vector<std::string> figures;
  std::size_t best = 0;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const int loading = load > 0 ? static_cast<int>(i) : 0;  // with nothing to load the other cores stay idle
    seconds.push_back(load_and_step(load_time, steps[i], loading, candidates[i].intra_op));
    figures.push_back(fmt::format("{:.3g} ms on {} + {}", seconds[i] * 1e3, candidates[i].intra_op, loading));
    best = seconds[i] < seconds[best] * (1 - kTie) ? i : best;
  }
  const int loading = load > 0 ? static_cast<int>(best) : 0;
  put_threads(loading, Origin::kMeasured,
              fmt::format("a sample loads in {:.3g} ms{}; with training, on intra_op + threads: {}", load * 1e3,
                          load_time.worth_readers()
                              ? fmt::format(", {:.0f} % of them waiting for the disk", 100 * load_time.asleep / load)
                              : "",
                          fmt::join(figures, ", ")));
  if (free_intra_op) {
    put(plan, "intra_op", std::to_string(candidates[best].intra_op), Origin::kMeasured,
        load > 0 ? fmt::format("{} cores less {} loader threads", facts.cores, loading)
                 : fmt::format("a sample takes {}", fmt::join(figures, ", ")));
  }
}

}  // namespace

Plan resolve(const Options& options, const Facts& facts) {
  if (facts.train_samples < 1) {
    fail<ConfigError>(kWhere, "there is no training sample");
  }
  Plan plan;
  put_general_defaults(plan, facts);
  for (const core::PlanRow& row : facts.recipe) {
    put(plan, row.key, row.value, row.origin, row.reason);
  }
  put_asked(plan, options);
  settle_batch(plan, options, facts);
  settle_tail(plan, options, facts);
  if (plan.freeze > 0 && plan.weights.empty()) {
    fail<ConfigError>(kWhere, "freeze={} keeps random weights as they are; give weights=FILE too", plan.freeze);
  }
  if (plan.early_stop > 0 && facts.val_samples == 0) {
    fail<ConfigError>(kWhere, "early_stop={} needs a validation split, and there is none; set val=0.1",
                      plan.early_stop);
  }
  if (plan.precision == "fp16" && plan.device == "cpu") {
    plan.notes["precision"].reason += "; warning: most CPUs compute fp16 many times slower than fp32";
  }
  if (plan.nvtx && plan.device == "cpu") {
    fail<ConfigError>(kWhere, "nvtx=on marks the time line of a GPU, and the device is cpu; leave it out");
  }
  if (plan.half_weights && options.find("precision") != nullptr && plan.precision == "fp32") {
    fail<ConfigError>(kWhere, "half_weights needs a half precision; set precision=bf16, or half_weights=off");
  }
  if (options.find("intra_op") == nullptr && options.find("threads") != nullptr) {
    const auto left = std::max<std::int64_t>(1, facts.cores - plan.threads);
    put(plan, "intra_op", std::to_string(left), Origin::kDefault,
        fmt::format("{} cores less {} loader threads", facts.cores, plan.threads));
  }
  if (plan.intra_op + plan.threads > facts.cores && plan.device == "cpu" && plan.threads > 0) {
    plan.notes["threads"].reason += fmt::format("; warning: {} + {} threads on {} cores disturb each other",
                                                plan.intra_op, plan.threads, facts.cores);
  }
  return plan;
}

void check_repeatable(const Plan& plan, const Facts& facts) {
  if (plan.batch > facts.train_samples) {
    fail<ConfigError>(kWhere,
                      "the plan's batch of {} is larger than the {} training samples; plan anew with batch={} or less",
                      plan.batch, facts.train_samples, facts.train_samples);
  }
  if (facts.couples_samples && smallest_pass(plan, facts.train_samples) < 2) {
    fail<ConfigError>(kWhere,
                      "the plan's batches of {} in microbatches of {} end in a forward pass of 1 of {} samples, which "
                      "batch norm cannot train on; plan anew",
                      plan.batch, plan.microbatch, facts.train_samples);
  }
}

void measure(Plan& plan, const Options& options, const Facts& facts, Trials& trials) {
  const bool free_precision = options.find("precision") == nullptr;
  const bool free_threads = options.find("threads") == nullptr;
  const bool free_intra_op = options.find("intra_op") == nullptr;
  const int all_cores = free_intra_op ? std::max<int>(1, free_threads ? facts.cores : static_cast<int>(plan.intra_op))
                                      : static_cast<int>(plan.intra_op);
  if (free_precision && plan.half_weights) {
    put(plan, "precision", "bf16", Origin::kAdvice, "half_weights needs a half precision");
  }
  measure_arithmetic(plan, free_precision && !plan.half_weights, options.find("layout") == nullptr, all_cores, trials);
  if (free_threads) {
    measure_threads(plan, free_intra_op, facts, trials);
  }
}

std::int64_t smallest_pass(const Plan& plan, std::int64_t train_samples) {
  const std::int64_t tail = plan.tail == "drop" ? 0 : train_samples % plan.batch;
  const std::int64_t whole = smallest_part(plan.batch, plan.microbatch);
  return tail == 0 ? whole : std::min(whole, smallest_part(tail, plan.microbatch));
}

std::int64_t steps_per_epoch(const Plan& plan, std::int64_t train_samples) {
  return plan.tail == "drop" ? std::max<std::int64_t>(1, train_samples / plan.batch)
                             : (train_samples + plan.batch - 1) / plan.batch;
}

std::int64_t total_steps(const Plan& plan, std::int64_t train_samples) {
  return plan.steps > 0 ? plan.steps : plan.epochs * steps_per_epoch(plan, train_samples);
}

}  // namespace stoker::train
