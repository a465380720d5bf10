// SPDX-License-Identifier: Apache-2.0
// Current values by name and labels, and their text in the OpenMetrics format 1.0, which Prometheus reads. Used by the
// Prometheus sink; torch-free. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker::io {

using Labels = std::vector<std::pair<std::string, std::string>>;  // name and value

class OpenMetrics {
 public:
  // A value that goes up and down. name: see metric_name(); help: one line.
  void set(std::string_view name, std::string_view help, const Labels& labels, double value);
  // A sum that only grows; its sample is named `name_total`. Negative amounts and NaN are not added.
  void add(std::string_view name, std::string_view help, const Labels& labels, double amount);
  // Sets such a sum.
  void set_total(std::string_view name, std::string_view help, const Labels& labels, double value);
  // Facts as labels; its sample is named `name_info`.
  void inform(std::string_view name, std::string_view help, const Labels& labels);

  // Takes the sample of these labels out, if there is one.
  void remove(std::string_view name, const Labels& labels);

  [[nodiscard]] std::string text() const;

 private:
  struct Family {
    std::string_view type;
    std::string help;
    std::map<std::string, double> samples;  // by the text of their labels
  };
  double& sample(std::string_view name, std::string_view type, std::string_view help, const Labels& labels);

  std::map<std::string, Family, std::less<>> families_;
};

// The name with "_" for every character that a metric's name cannot have: "loss (train)" is "loss__train_".
[[nodiscard]] std::string metric_name(std::string_view name);

}  // namespace stoker::io
