// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/batch_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "stoker/base/counted.h"
#include "stoker/base/fmt.h"

namespace stoker::memory {
namespace {

constexpr double kClose = 0.03;        // a largest size this near to its bound is good enough
constexpr double kGrowth = 4;          // from probe to probe, while memory and time allow it
constexpr double kMostGrowth = 64;     // where few probes must reach far
constexpr int kForRefinement = 2;      // probes that growth leaves for the end of the search
constexpr double kWorthGrowing = 1.5;  // a smaller step towards the time limit is not worth a probe
constexpr double kGap = 2.2;           // ratio of neighbours around the fastest size that leaves room for another

double real(std::int64_t value) { return static_cast<double>(value); }
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::floor(value + 1e-9)); }

// The line through the last two of the points, at x; nothing if there are fewer, or if it does not rise.
struct Line {
  double x = 0, y = 0, slope = 0;
  [[nodiscard]] double at(double other) const { return y + slope * (other - x); }
  [[nodiscard]] double reaches(double height) const { return x + (height - y) / slope; }
};
std::optional<Line> line_through(const Probe& one, const Probe& other) {
  const double slope = real(other.bytes - one.bytes) / real(other.samples - one.samples);
  if (one.bytes < 0 || other.bytes < 0 || slope <= 0) {
    return std::nullopt;
  }
  return Line{real(other.samples), real(other.bytes), slope};
}

class Search {
 public:
  Search(Prober& prober, const FinderOptions& options)
      : prober_(prober), options_(options), start_(options.now()), most_(std::max(options.most, options.smallest)) {}

  Found run() {
    try_size(options_.smallest);
    while (const std::int64_t size = fits_.empty() ? 0 : next_larger()) {
      try_size(size);
    }
    look_again();
    while (const std::int64_t size = fits_.empty() ? 0 : next_to_fastest()) {
      try_size(size);
    }
    choose();
    found_.seconds = spent();
    return found_;
  }

 private:
  [[nodiscard]] double spent() const { return options_.now() - start_; }
  [[nodiscard]] int left() const { return options_.probes - made_; }
  [[nodiscard]] const Probe& largest() const { return fits_.back(); }

  void try_size(std::int64_t samples) {
    const double before = spent();
    const Probe probe = prober_.probe(samples);
    ++made_;
    found_.probes.push_back(probe);
    if (probe.fits) {
      fits_.insert(std::ranges::upper_bound(fits_, samples, {}, &Probe::samples), probe);
    } else if (failed_.samples == 0 || samples < failed_.samples) {
      failed_ = probe;
    }
    if (probe.fits && samples == largest().samples) {
      largest_took_ = spent() - before;
    }
  }

  // Seconds that a probe of this many samples is expected to take.
  [[nodiscard]] double cost(double samples) const { return largest_took_ * samples / real(largest().samples); }

  // The most samples that fit, by the newest figures; infinite if unknown.
  [[nodiscard]] double predicted() const {
    if (options_.limit < 0 || largest().bytes < 0) {
      return std::numeric_limits<double>::infinity();
    }
    std::optional<Line> line;
    if (failed_.bytes >= 0) {  // computed, but beyond the limit
      line = line_through(largest(), failed_);
    } else if (fits_.size() >= 2) {
      line = line_through(fits_[fits_.size() - 2], largest());
    } else if (largest().bytes > 0) {  // what does not depend on samples makes this too careful
      return std::max(real(largest().samples + 1),
                      real(largest().samples) * real(options_.limit) / real(largest().bytes));
    }
    return line ? line->reaches(real(options_.limit)) : std::numeric_limits<double>::infinity();
  }

  // Whether the line through older probes predicted the largest one.
  [[nodiscard]] bool line_holds() const {
    if (fits_.size() < 3) {
      return false;
    }
    const auto line = line_through(fits_[fits_.size() - 3], fits_[fits_.size() - 2]);
    return line && std::abs(line->at(real(largest().samples)) - real(largest().bytes)) < kClose * real(largest().bytes);
  }

  // The next size on the way to the largest; 0 and the reason if the search is over.
  std::int64_t next_larger() {
    const std::int64_t now = largest().samples;
    const std::int64_t bound = failed_.samples > 0 ? std::min(most_, failed_.samples - 1) : most_;
    const double fitting = predicted();
    if (now >= most_) {
      return end(FinderEnd::kWholeBatch, "");
    }
    if (now >= whole(real(bound) * (1 - kClose)) || fitting < real(now) * (1 + kClose) ||
        std::floor(fitting) <= real(now)) {
      return end(FinderEnd::kMemory, "");
    }
    if (left() == 0) {
      return end(FinderEnd::kProbes,
                 fmt::format("{}the search ended after {}", failed_.samples > 0 ? failure() + ", and " : "",
                             counted(options_.probes, "probe")));
    }
    const std::int64_t next = failed_.samples > 0 ? between(now, bound, fitting) : beyond(now, fitting);
    const double affordable = largest_took_ > 0 ? (options_.seconds - spent()) / largest_took_ * real(now)
                                                : std::numeric_limits<double>::infinity();
    if (real(next) <= affordable) {
      return next;
    }
    if (failed_.samples == 0 && affordable >= kWorthGrowing * real(now)) {
      return whole(affordable);
    }
    return end(FinderEnd::kTime, fmt::format("{} would take longer than the {:.0f} s of the search",
                                             counted(next, "sample"), options_.seconds));
  }

  // Nothing has failed so far.
  [[nodiscard]] std::int64_t beyond(std::int64_t now, double fitting) const {
    const double target = std::min(real(most_), fitting);
    const double ratio = target / real(now);
    const double growth = std::clamp(std::pow(ratio, 1.0 / std::max(1, left() - kForRefinement)), kGrowth, kMostGrowth);
    return ratio <= kWorthGrowing * growth ? std::max(now + 1, whole(target)) : whole(real(now) * growth);
  }

  // Between a size that fits and one that does not.
  [[nodiscard]] std::int64_t between(std::int64_t now, std::int64_t bound, double fitting) {
    const double middle = (real(now) + real(bound)) / 2;
    double target = std::min(fitting, real(bound));
    if (target > real(bound) * (1 - kClose)) {  // the line has just failed: by a little if it was right before
      target = line_holds() && !failed_near_line_ ? real(bound) * (1 - kClose) : middle;
      failed_near_line_ = true;
    }
    return std::clamp(whole(target), now + 1, bound);
  }

  std::int64_t end(FinderEnd why, std::string reason) {
    found_.end = why;
    found_.largest_reason = std::move(reason);
    if (why == FinderEnd::kWholeBatch) {
      found_.largest_reason = options_.most_reason;
    } else if (why == FinderEnd::kMemory) {
      found_.largest_reason =
          failed_.samples > 0 ? failure() : "more would not fit, by the memory that smaller passes needed";
    }
    return 0;
  }
  [[nodiscard]] std::string failure() const { return counted(failed_.samples, "sample") + " did not fit"; }

  // Another program may have taken the cores for a moment: the largest size is slower only if it is so twice.
  void look_again() {
    if (fits_.empty() || flat() || left() == 0 || spent() + largest_took_ > options_.seconds) {
      return;
    }
    const Probe again = prober_.probe(largest().samples);
    ++made_;
    if (again.fits && again.seconds < largest().seconds) {
      fits_.back().seconds = again.seconds;
      std::ranges::find(found_.probes, again.samples, &Probe::samples)->seconds = again.seconds;
    }
  }
  [[nodiscard]] bool flat() const {
    return largest().seconds_per_sample() <= fits_[fastest()].seconds_per_sample() * (1 + kEquallyFast);
  }

  // A size beside the fastest one, if larger ones are slower; 0: none is worth a probe.
  [[nodiscard]] std::int64_t next_to_fastest() const {
    const std::size_t best = fastest();
    if (left() == 0 || flat()) {
      return 0;
    }
    const auto middle = [&](std::size_t low) -> std::int64_t {
      const double one = real(fits_[low].samples), other = real(fits_[low + 1].samples);
      const double size = std::sqrt(one * other);
      return other / one > kGap && spent() + cost(size) < options_.seconds ? whole(size) : 0;
    };
    const std::int64_t above = middle(best);
    return above > 0 || best == 0 ? above : middle(best - 1);
  }

  [[nodiscard]] std::size_t fastest() const {
    return static_cast<std::size_t>(std::ranges::min_element(fits_, {}, &Probe::seconds_per_sample) - fits_.begin());
  }

  void choose() {
    if (fits_.empty()) {
      found_.end = FinderEnd::kMemory;
      found_.largest_reason = fmt::format("not even {} fit", counted(options_.smallest, "sample"));
      return;
    }
    found_.largest = largest().samples;
    const Probe& best = fits_[fastest()];
    found_.fastest = best.samples;
    const auto as_fast = [&](const Probe& each) {
      return each.seconds_per_sample() <= best.seconds_per_sample() * (1 + kEquallyFast);
    };
    const Probe& chosen = options_.smaller_wins ? *std::ranges::find_if(fits_, as_fast)
                                                : *std::find_if(fits_.rbegin(), fits_.rend(), as_fast);
    found_.chosen = chosen.samples;
    found_.chosen_reason =
        chosen.samples == best.samples
            ? "the fastest"
            : fmt::format("as fast as {}, and {}", counted(best.samples, "sample"),
                          options_.smaller_wins ? "a smaller batch learns more per epoch" : "fewer passes per batch");
    if (const std::int64_t most = most_with_margin(); most < chosen.samples) {
      found_.chosen = most;
      found_.chosen_reason +=
          fmt::format("; {:.0f} % of the memory stay free for later passes of other shapes", 100 * options_.margin);
    }
  }

  // The most samples that leave the margin; a size below one that fits needs no probe of its own.
  [[nodiscard]] std::int64_t most_with_margin() const {
    if (largest().samples == most_) {
      return most_;
    }
    const double room = 1 - options_.margin;
    double most = failed_.samples > 0 ? room * real(failed_.samples - 1) : real(largest().samples);
    if (options_.limit >= 0 && largest().bytes >= 0) {
      most = real(largest().samples);
      if (const double usable = room * real(options_.limit); real(largest().bytes) > usable) {
        const auto line = fits_.size() < 2 ? std::nullopt : line_through(fits_[fits_.size() - 2], largest());
        most = line ? line->reaches(usable) : room * most;
      }
    }
    return std::clamp(whole(most), std::min(options_.smallest, largest().samples), largest().samples);
  }

  Prober& prober_;
  const FinderOptions& options_;
  double start_;
  std::int64_t most_;
  Found found_;
  std::vector<Probe> fits_;  // by samples
  Probe failed_;             // the smallest that does not fit; 0 samples: none
  double largest_took_ = 0;  // seconds of the whole probe of the largest size that fits
  bool failed_near_line_ = false;
  int made_ = 0;  // probes, those that were repeated included
};

}  // namespace

Found find_batch(Prober& prober, const FinderOptions& options) { return Search(prober, options).run(); }

}  // namespace stoker::memory
