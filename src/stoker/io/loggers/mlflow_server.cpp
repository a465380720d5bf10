// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/mlflow_server.h"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "stoker/base/base64.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

constexpr std::size_t kLongestParameter = 500, kLongestTag = 5000;  // bytes: the limits of old servers
constexpr std::size_t kLongestReason = 300;

std::string json_text(std::string_view text) { return nlohmann::json(printable(text)).dump(); }

std::string cut(const std::string& text, std::size_t most) {
  const std::string whole = printable(text);
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(whole[std::min(end, whole.size() - 1)]) & 0xC0) == 0x80) {
    --end;  // not within a character
  }
  return whole.size() <= most ? whole : whole.substr(0, end) + "...";
}

std::string pairs_json(const MlflowPairs& pairs, std::size_t longest) {
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += fmt::format(R"({}{{"key":{},"value":{}}})", text.empty() ? "" : ",", json_text(key),
                        json_text(cut(value, longest)));
  }
  return text;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string without_slashes(std::string address) {
  while (address.ends_with('/')) {
    address.pop_back();
  }
  return address;
}

// Empty: there are no credentials.
std::string authorization() {
  if (const std::string token = variable("MLFLOW_TRACKING_TOKEN"); !token.empty()) {
    return "Authorization: Bearer " + token;
  }
  const std::string user = variable("MLFLOW_TRACKING_USERNAME");
  const std::string both = user + ':' + variable("MLFLOW_TRACKING_PASSWORD");
  return user.empty() ? "" : "Authorization: Basic " + base64(as_bytes(both));
}

std::string escaped_for_url(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

// A member of a reply by its path; empty if the reply is something else.
std::string text_at(const std::string& body, const char* path) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer pointer(path);
  return !json.is_discarded() && json.contains(pointer) && json.at(pointer).is_string()
             ? json.at(pointer).get<std::string>()
             : "";
}

// A server that is busy, starting or misconfigured may take the same call later; so may one that wants other
// credentials, which a later session has.
bool may_succeed_later(int status) {
  return status >= 500 || status == 401 || status == 403 || status == 407 || status == 408 || status == 429;
}

}  // namespace

std::string mlflow_json(const MlflowPoint& point) {
  const std::string value = std::isnan(point.value)   ? R"("NaN")"
                            : std::isinf(point.value) ? (point.value > 0 ? R"("Infinity")" : R"("-Infinity")")
                                                      : fmt::format("{}", point.value);
  return fmt::format(R"({{"key":{},"value":{},"timestamp":{},"step":{}}})", json_text(point.key), value, point.time,
                     point.step);
}

MlflowServer::MlflowServer(std::string address)
    : address_(without_slashes(std::move(address))), headers_{"Content-Type: application/json"} {
  const std::string credentials = authorization();
  withheld_ = !credentials.empty() && address_ != without_slashes(variable("MLFLOW_TRACKING_URI"));
  if (!credentials.empty() && !withheld_) {
    headers_.push_back(credentials);
  }
}

MlflowResult MlflowServer::call(const std::string& method, const std::string& path, std::string body,
                                HttpReply& reply) {
  reply = client_.send({method, address_ + "/api/2.0/mlflow/" + path, headers_, std::move(body)}, patience_);
  if (reply.status == 200) {
    return std::nullopt;
  }
  if (reply.status == 0) {
    return MlflowFailure{false, printable(reply.failure)};
  }
  const std::string said = text_at(reply.body, "/message");
  const bool asks = withheld_ && (reply.status == 401 || reply.status == 403);
  return MlflowFailure{
      !may_succeed_later(reply.status),
      fmt::format("it answers {}{}{}{}", reply.status, said.empty() ? "" : ": ", cut(said, kLongestReason),
                  asks ? "; credentials are sent only to the server of MLFLOW_TRACKING_URI" : "")};
}

MlflowResult MlflowServer::find_experiment(const std::string& name, std::string& id) {
  HttpReply reply;
  const std::string get = "experiments/get-by-name?experiment_name=" + escaped_for_url(name);
  MlflowResult result = call("GET", get, "", reply);
  if (result && text_at(reply.body, "/error_code") == "RESOURCE_DOES_NOT_EXIST") {
    result = call("POST", "experiments/create", fmt::format(R"({{"name":{}}})", json_text(name)), reply);
    id = text_at(reply.body, "/experiment_id");
    if (text_at(reply.body, "/error_code") == "RESOURCE_ALREADY_EXISTS") {  // another run was first
      result = call("GET", get, "", reply);
    }
  }
  if (result) {
    return result;
  }
  id = id.empty() ? text_at(reply.body, "/experiment/experiment_id") : id;
  return id.empty() ? MlflowResult({true, "its answer is not that of an MLflow server"}) : std::nullopt;
}

MlflowResult MlflowServer::create_run(const std::string& experiment, const std::string& name, std::int64_t start_ms,
                                      const MlflowPairs& tags, std::string& id) {
  HttpReply reply;
  const std::string user = variable("USER");
  MlflowResult result = call(
      "POST", "runs/create",
      fmt::format(R"({{"experiment_id":{},"run_name":{},"user_id":{},"start_time":{},"tags":[{}]}})",
                  json_text(experiment), json_text(name), json_text(user), start_ms, pairs_json(tags, kLongestTag)),
      reply);
  if (!result) {
    id = text_at(reply.body, "/run/info/run_id");
  }
  return !result && id.empty() ? MlflowResult({true, "its answer is not that of an MLflow server"}) : result;
}

MlflowResult MlflowServer::log(const std::string& run, std::span<const MlflowPoint> points,
                               const MlflowPairs& parameters, const MlflowPairs& tags) {
  std::string metrics;
  for (const MlflowPoint& point : points) {
    metrics += (metrics.empty() ? "" : ",") + mlflow_json(point);
  }
  HttpReply reply;
  return call("POST", "runs/log-batch",
              fmt::format(R"({{"run_id":{},"metrics":[{}],"params":[{}],"tags":[{}]}})", json_text(run), metrics,
                          pairs_json(parameters, kLongestParameter), pairs_json(tags, kLongestTag)),
              reply);
}

MlflowResult MlflowServer::update(const std::string& run, std::string_view status, std::int64_t end_ms) {
  const std::string end = end_ms > 0 ? fmt::format(R"(,"end_time":{})", end_ms) : "";
  HttpReply reply;
  return call("POST", "runs/update",
              fmt::format(R"({{"run_id":{},"status":{}{}}})", json_text(run), json_text(status), end), reply);
}

}  // namespace stoker::io
