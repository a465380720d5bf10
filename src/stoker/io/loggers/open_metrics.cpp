// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/open_metrics.h"

#include <cmath>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

constexpr std::string_view kGauge = "gauge", kCounter = "counter", kInfo = "info";

std::string_view suffix(std::string_view type) { return type == kCounter ? "_total" : type == kInfo ? "_info" : ""; }

// Of label values and help: the format is UTF-8.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') {
      result += '\\';
    }
    result += c;
  }
  return result;
}

std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(value));
  }
  return text.empty() ? text : text + '}';
}

std::string number(double value) {
  return std::isnan(value) ? "NaN" : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : fmt::format("{}", value);
}

}  // namespace

double& OpenMetrics::sample(std::string_view name, std::string_view type, std::string_view help, const Labels& labels) {
  auto family = families_.find(name);
  if (family == families_.end()) {
    family = families_.emplace(name, Family{type, escaped(help), {}}).first;
  }
  return family->second.samples[label_text(labels)];
}

void OpenMetrics::set(std::string_view name, std::string_view help, const Labels& labels, double value) {
  sample(name, kGauge, help, labels) = value;
}

void OpenMetrics::add(std::string_view name, std::string_view help, const Labels& labels, double amount) {
  sample(name, kCounter, help, labels) += amount > 0 ? amount : 0;
}

void OpenMetrics::set_total(std::string_view name, std::string_view help, const Labels& labels, double value) {
  sample(name, kCounter, help, labels) = value;
}

void OpenMetrics::inform(std::string_view name, std::string_view help, const Labels& labels) {
  sample(name, kInfo, help, labels) = 1;
}

void OpenMetrics::remove(std::string_view name, const Labels& labels) {
  const auto family = families_.find(name);
  if (family != families_.end()) {
    family->second.samples.erase(label_text(labels));
    if (family->second.samples.empty()) {
      families_.erase(family);
    }
  }
}

std::string OpenMetrics::text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    text += fmt::format("# TYPE {} {}\n# HELP {} {}\n", name, family.type, name, family.help);
    for (const auto& [labels, value] : family.samples) {
      text += fmt::format("{}{}{} {}\n", name, suffix(family.type), labels, number(value));
    }
  }
  return text + "# EOF\n";
}

std::string metric_name(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    c = fits ? c : '_';
  }
  return result;
}

}  // namespace stoker::io
