// SPDX-License-Identifier: Apache-2.0
// Checks that a short run learned, compared with guessing. After a few steps on a few samples, the accuracy differs by
// several samples between kinds of CPU (bfloat16 sums round differently with AMX), so no test expects a fixed accuracy.
// Thread-safe: no state.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace stoker::testing {

// The loss of each training step in order, from the run's metrics.jsonl.
inline std::vector<double> training_losses(const std::filesystem::path& run) {
  std::vector<double> losses;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event.at("event") == "step") {
      const auto& loss = event.at("scalars").at("loss");
      losses.push_back(loss.is_number() ? loss.get<double>() : std::nan(loss.get<std::string>().c_str()));
    }
  }
  return losses;
}

// The mean of every `steps` losses in turn, for example of each epoch. Leftover losses at the end are ignored.
inline std::vector<double> means_of(const std::vector<double>& losses, std::size_t steps) {
  std::vector<double> means;
  for (auto from = losses.begin(); losses.end() - from >= static_cast<std::ptrdiff_t>(steps);) {
    const auto to = from + static_cast<std::ptrdiff_t>(steps);
    means.push_back(std::accumulate(from, to, 0.0) / static_cast<double>(steps));
    from = to;
  }
  return means;
}

// Succeeds if the mean loss of the run's last epoch is below three quarters of the loss of guessing. With equally
// frequent classes, no model that ignores its inputs gets below log(classes), the entropy of the targets, so chance
// does not reach three quarters of it. The runs of these tests end at about half.
inline ::testing::AssertionResult beats_guessing(const std::filesystem::path& run, std::size_t steps_per_epoch,
                                                 int classes) {
  const std::vector<double> means = means_of(training_losses(run), steps_per_epoch);
  if (means.empty()) {
    return ::testing::AssertionFailure() << run << " has fewer than " << steps_per_epoch << " steps";
  }
  const double guessing = std::log(classes);
  auto result = means.back() < 0.75 * guessing ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  return result << "mean loss " << means.back() << " in the last epoch; guessing gives " << guessing;
}

// Succeeds if the mean loss of each epoch differs by less than a tenth from that of the twin, a run in float32 with the
// same samples and settings on the same machine. Half precision changes it by up to 3 % in the runs of these tests.
inline ::testing::AssertionResult trains_like(const std::filesystem::path& run, const std::filesystem::path& twin,
                                              std::size_t steps_per_epoch) {
  const std::vector<double> means = means_of(training_losses(run), steps_per_epoch);
  const std::vector<double> expected = means_of(training_losses(twin), steps_per_epoch);
  if (means.size() != expected.size() || means.empty()) {
    return ::testing::AssertionFailure() << run << " has " << means.size() << " epochs, its twin " << expected.size();
  }
  for (std::size_t epoch = 0; epoch < means.size(); ++epoch) {
    if (!(std::abs(means[epoch] - expected[epoch]) < 0.1 * expected[epoch])) {  // true for NaN, too
      return ::testing::AssertionFailure()
             << "mean loss " << means[epoch] << " in epoch " << epoch + 1 << ", the twin's is " << expected[epoch];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace stoker::testing
