// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/measure.h"

#include <algorithm>
#include <array>

#include "stoker/base/fmt.h"

namespace stoker::train {
namespace {

using core::Origin;

// Precision and layout together: the fastest pair of those that are not set.
class ArithmeticChoice {
 public:
  ArithmeticChoice(std::vector<std::string> precisions, std::vector<std::string> layouts, int intra_op, Trials& trials)
      : precisions_(std::move(precisions)), layouts_(std::move(layouts)), trials_(trials) {
    for (const std::string& layout : layouts_) {
      for (const std::string& precision : precisions_) {
        candidates_.push_back({precision, layout, intra_op});
      }
    }
  }

  // A busy machine distorts a measurement: a candidate other than the simplest must win two rounds, or by the medians
  // of three.
  Candidate choose() {
    const std::vector<double> first = look();
    const std::size_t winner = best_of(first);
    if (winner == 0) {
      return candidates_[winner];
    }
    const std::vector<double> second = look();
    if (best_of(second) == winner) {
      return candidates_[winner];
    }
    const std::vector<double> third = look();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {  // the middle one of three
      seconds_[i] = std::max(std::min(first[i], second[i]), std::min(std::max(first[i], second[i]), third[i]));
    }
    return candidates_[best_of(seconds_)];
  }
  // Milliseconds per sample, as used for the choice.
  [[nodiscard]] double ms(const std::string& precision, const std::string& layout) const {
    const auto place = std::ranges::find_if(
        candidates_, [&](const Candidate& each) { return each.precision == precision && each.layout == layout; });
    return 1e3 * seconds_[static_cast<std::size_t>(place - candidates_.begin())];
  }
  // In the faster layout.
  [[nodiscard]] double best_ms(const std::string& precision) const {
    return std::min(ms(precision, layouts_.front()), ms(precision, layouts_.back()));
  }

 private:
  std::vector<double> look() {
    seconds_ = trials_.step_seconds_per_sample(candidates_);
    return seconds_;
  }
  [[nodiscard]] std::size_t best_of(const std::vector<double>& seconds) const {
    // Noise must not decide.
    const auto clearly_faster = [&](std::size_t one, std::size_t simpler) {
      return seconds[one] < seconds[simpler] * (1 - kTie);
    };
    // The better layout of each precision, then the better precision; the simpler ones come first.
    std::size_t best = 0;
    for (std::size_t precision = 0; precision < precisions_.size(); ++precision) {
      std::size_t pair = precision;
      for (std::size_t other = pair + precisions_.size(); other < candidates_.size(); other += precisions_.size()) {
        pair = clearly_faster(other, pair) ? other : pair;
      }
      best = precision == 0 || clearly_faster(pair, best) ? pair : best;
    }
    return best;
  }

  std::vector<std::string> precisions_, layouts_;
  Trials& trials_;
  std::vector<Candidate> candidates_;  // all precisions in the first layout, then all in the second
  std::vector<double> seconds_;        // per sample, parallel to candidates_
};

void measure_arithmetic(Plan& plan, bool free_precision, bool free_layout, int intra_op, Trials& trials) {
  free_layout = free_layout && plan.device == "cpu" && trials.layouts_can_be_tried();
  if (!free_precision && !free_layout) {
    return;
  }
  ArithmeticChoice choice(
      free_precision ? std::vector<std::string>{"fp32", "bf16"} : std::vector{plan.precision},
      free_layout ? std::vector<std::string>{"channels_last", "contiguous"} : std::vector{plan.layout}, intra_op,
      trials);
  const Candidate best = choice.choose();
  if (free_precision) {
    decide(plan, "precision", best.precision, Origin::kMeasured,
           fmt::format("a sample takes {:.3g} ms in fp32, {:.3g} ms in bf16", choice.best_ms("fp32"),
                       choice.best_ms("bf16")));
  }
  if (free_layout) {
    decide(plan, "layout", best.layout, Origin::kMeasured,
           fmt::format("a sample takes {:.3g} ms in channels_last, {:.3g} ms in contiguous, both in {}",
                       choice.ms(best.precision, "channels_last"), choice.ms(best.precision, "contiguous"),
                       best.precision));
  }
}

// How cores are shared: threads per operator, and loader threads (0: the operators' threads load).
struct Sharing {
  int intra_op = 1, loading = 0;
  bool operator==(const Sharing&) const = default;
};

// Seconds per sample. More loader threads than planned may run while they wait for a disk (data::ThreadGovernor), but
// no more of them compute at a time.
double load_and_step(const core::LoadTime& load, double step, const Sharing& sharing) {
  if (sharing.loading == 0) {
    return load.seconds / sharing.intra_op + step;
  }
  const int most = sharing.loading + (load.worth_readers() ? core::kMostReaders : 0);
  return std::max({(load.seconds - load.asleep) / sharing.loading, load.seconds / most, step});
}

// Ascending: one thread, two, half of the cores and nearly all; these represent the values in between.
std::vector<int> operator_threads(const Plan& plan, bool free, int cores) {
  if (!free) {
    return {static_cast<int>(plan.intra_op)};
  }
  std::vector<int> result;
  for (const int threads : {1, 2, cores / 2, cores - 1, cores}) {
    if (threads >= 1 && threads <= cores && (result.empty() || threads > result.back())) {
      result.push_back(threads);
    }
  }
  return result;
}

// Loading between steps, or during steps on the cores that operators leave free. Fewer operator threads come first.
std::vector<Sharing> sharings(const std::vector<int>& operators, const Plan& plan, bool free_threads, bool loads,
                              int cores) {
  std::vector<Sharing> result;
  for (const int intra_op : operators) {
    const int left = cores - intra_op;
    if (!free_threads && (intra_op == operators.front() || plan.threads <= left)) {
      result.push_back({intra_op, static_cast<int>(plan.threads)});
    }
    if (free_threads) {
      result.push_back({intra_op, 0});
    }
    if (free_threads && loads && left > 0) {
      result.push_back({intra_op, left});
    }
  }
  return result;
}

// Measures the sharings until their times are known well enough to choose one.
class ThreadChoice {
 public:
  ThreadChoice(const Plan& plan, std::vector<int> operators, const core::LoadTime& load, Trials& trials)
      : plan_(plan), operators_(std::move(operators)), load_(load), trials_(trials) {}

  // Measurements with several threads depend most on other load: several threads must win two rounds out of three.
  Sharing choose(const std::vector<Sharing>& sharings) {
    std::array<std::size_t, 3> looks{};
    looks[0] = look(sharings);
    if (sharings[looks[0]].intra_op == sharings.front().intra_op) {
      return sharings[looks[0]];
    }
    looks[1] = look(sharings);
    if (looks[1] == looks[0]) {
      return sharings[looks[0]];
    }
    looks[2] = look(sharings);
    std::ranges::sort(looks);
    return sharings[looks[1]];
  }
  // Figures of the last round: "7.25 ms on 2 + 0, ...".
  [[nodiscard]] std::string figures() const { return fmt::format("{}", fmt::join(figures_, ", ")); }

 private:
  std::size_t look(const std::vector<Sharing>& sharings) {
    std::vector<Candidate> candidates;
    for (const int intra_op : operators_) {
      candidates.push_back({plan_.precision, plan_.layout, intra_op});
    }
    const std::vector<double> steps = trials_.step_seconds_per_sample(candidates);
    figures_.clear();
    std::size_t best = 0;
    double best_seconds = 0;
    for (std::size_t i = 0; i < sharings.size(); ++i) {
      const auto step = std::ranges::find(operators_, sharings[i].intra_op) - operators_.begin();
      const double seconds = load_and_step(load_, steps[static_cast<std::size_t>(step)], sharings[i]);
      figures_.push_back(fmt::format("{:.3g} ms on {} + {}", seconds * 1e3, sharings[i].intra_op, sharings[i].loading));
      const bool more = sharings[i].intra_op > sharings[best].intra_op;
      const bool eligible = !more || !small(steps.front(), sharings[i]);
      if (i == 0 || (eligible && seconds < best_seconds * (1 - (more ? kWorthThreads : kTie)))) {
        best = i;
        best_seconds = seconds;
      }
    }
    return best;
  }
  // Whether the work of the operators between two batches is too short for several threads.
  [[nodiscard]] bool small(double fewest_threads_step, const Sharing& sharing) const {
    const double sample = fewest_threads_step + (sharing.loading == 0 ? load_.seconds : 0);
    return sample * static_cast<double>(plan_.microbatch) < kSmallStep;
  }

  const Plan& plan_;
  std::vector<int> operators_;
  core::LoadTime load_;
  Trials& trials_;
  std::vector<std::string> figures_;
};

std::string loading_time(const core::LoadTime& load) {
  return fmt::format("a sample loads in {:.3g} ms{}", load.seconds * 1e3,
                     load.worth_readers()
                         ? fmt::format(", {:.0f} % of the time waiting for the disk", 100 * load.asleep / load.seconds)
                         : "");
}

// On a CPU: divides the cores between operators and loaders.
void measure_threads(Plan& plan, bool free_threads, bool free_intra_op, const Facts& facts, Trials& trials) {
  const core::LoadTime load = trials.load_time_per_sample();
  const std::vector<int> operators = operator_threads(plan, free_intra_op, facts.cores);
  const std::vector<Sharing> ways = sharings(operators, plan, free_threads, load.seconds > 0, facts.cores);
  if (ways.size() == 1) {
    if (free_threads) {
      decide(plan, "threads", "0", Origin::kDefault,
             load.seconds > 0 ? "operators use all cores" : "the samples are in memory");
    }
    return;
  }
  ThreadChoice choice(plan, operators, load, trials);
  const Sharing best = choice.choose(ways);
  const std::string figures = choice.figures();
  if (free_threads) {
    decide(plan, "threads", std::to_string(best.loading), Origin::kMeasured,
           load.seconds > 0 ? fmt::format("{}; with training, for intra_op + threads: {}", loading_time(load), figures)
                            : "the samples are in memory");
  }
  if (free_intra_op) {
    decide(plan, "intra_op", std::to_string(best.intra_op), Origin::kMeasured,
           fmt::format("a sample takes {}; more threads must be {:.0f} % faster, a step under {:.0f} ms uses one",
                       figures, 100 * kWorthThreads, kSmallStep * 1e3));
  }
}

// On a GPU: the threads of the step, of autograd, of copies and of logs sleep most of the time, but run late if loader
// threads use their cores. So loader threads leave three cores free, unless the GPU would wait for data.
void give_cores_to_loading(Plan& plan, bool free_intra_op, const Facts& facts, Trials& trials) {
  if (free_intra_op) {
    decide(plan, "intra_op", "1", Origin::kDefault, "the GPU computes, the CPU cores load data");
  }
  const core::LoadTime load = trials.load_time_per_sample();
  if (load.seconds <= 0) {
    decide(plan, "threads", "0", Origin::kDefault, "the samples are in memory");
    return;
  }
  const double step = trials.step_seconds_per_sample({{plan.precision, plan.layout, 1}}).front();
  const Sharing few{1, std::max(1, facts.cores - 3)}, all{1, std::max(1, facts.cores - 1)};
  const bool enough = load_and_step(load, step, all) > load_and_step(load, step, few) * (1 - kTie);
  decide(plan, "threads", std::to_string((enough ? few : all).loading), Origin::kMeasured,
         fmt::format("{}, the GPU trains on it in {:.3g} ms; {} cores are kept for the step, copies and logs",
                     loading_time(load), step * 1e3, facts.cores - (enough ? few : all).loading));
}

}  // namespace

void measure(Plan& plan, const Options& options, const Facts& facts, Trials& trials) {
  const bool free_precision = options.find("precision") == nullptr;
  const bool free_threads = options.find("threads") == nullptr;
  const bool free_intra_op = options.find("intra_op") == nullptr;
  const int all_cores = free_intra_op ? std::max<int>(1, free_threads ? facts.cores : static_cast<int>(plan.intra_op))
                                      : static_cast<int>(plan.intra_op);
  if (free_precision && plan.half_weights) {
    decide(plan, "precision", "bf16", Origin::kAdvice, "half_weights needs a half precision");
  }
  measure_arithmetic(plan, free_precision && !plan.half_weights, options.find("layout") == nullptr, all_cores, trials);
  if (plan.device != "cpu") {
    if (free_threads) {
      give_cores_to_loading(plan, free_intra_op, facts, trials);
    }
  } else if (free_threads || free_intra_op) {
    measure_threads(plan, free_threads, free_intra_op, facts, trials);
  }
}

}  // namespace stoker::train
