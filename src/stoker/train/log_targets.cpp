// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/log_targets.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace stoker::train {
namespace {

constexpr std::string_view kMlflow = "mlflow", kPrometheus = "prometheus:";

std::optional<std::uint16_t> port_from(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end ? std::optional(port) : std::nullopt;
}

// False for an unknown name, a bad value, and a name that came before.
bool add_target(LogTargets& targets, std::string_view one) {
  if (one == "wandb") {
    return !std::exchange(targets.wandb, true);
  }
  if (one.starts_with(kPrometheus) && !targets.prometheus) {
    targets.prometheus = port_from(one.substr(kPrometheus.size()));
    return targets.prometheus.has_value();
  }
  if (!one.starts_with(kMlflow) || targets.mlflow) {
    return false;
  }
  one.remove_prefix(kMlflow.size());
  if (one.empty()) {
    targets.mlflow = "";
    return true;
  }
  if (!one.starts_with(':') || !is_server_address(one.substr(1))) {
    return false;
  }
  targets.mlflow = one.substr(1);
  return true;
}

}  // namespace

bool is_server_address(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (text.starts_with(scheme)) {
      const std::string_view rest = text.substr(scheme.size());
      return !rest.empty() && rest.front() != '/' && rest.front() != ':' && rest.find('@') == rest.npos &&
             std::ranges::all_of(rest, [](char c) { return c > ' ' && c < 127 && c != '?' && c != '#'; });
    }
  }
  return false;
}

std::optional<LogTargets> parse_log_targets(std::string_view text) {
  LogTargets targets;
  if (text == "none") {
    return targets;
  }
  while (true) {
    const std::size_t comma = text.find(',');
    if (!add_target(targets, text.substr(0, comma))) {
      return std::nullopt;
    }
    if (comma == text.npos) {
      return targets;
    }
    text.remove_prefix(comma + 1);
  }
}

bool is_log_targets(std::string_view text) { return parse_log_targets(text).has_value(); }

}  // namespace stoker::train
