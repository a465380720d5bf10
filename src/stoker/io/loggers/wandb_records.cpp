// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/wandb_records.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/version.h"

namespace stoker::io {
namespace {

using Writer = protozero::pbf_writer;

// Fields of Record.
enum RecordField : protozero::pbf_tag_type {
  kNumber = 1,
  kHistory = 2,
  kSummary = 3,
  kStats = 7,
  kRun = 17,
  kExit = 18,
  kHeader = 21
};
constexpr protozero::pbf_tag_type kKey = 1, kValueJson = 16;  // of an item

template <typename Real>
std::string json_of(Real value) {
  return std::isnan(value)   ? "NaN"
         : std::isinf(value) ? (value > 0 ? "Infinity" : "-Infinity")
                             : fmt::format("{}", value);
}

template <typename Fill>
std::string record(std::int64_t number, RecordField field, const Fill& fill) {
  std::string bytes;
  Writer writer(bytes);
  writer.add_int64(kNumber, number);
  {
    Writer message(writer, field);
    fill(message);
  }
  return bytes;
}

void add_items(Writer& message, protozero::pbf_tag_type field, const WandbItems& items) {
  for (const auto& [key, json] : items) {
    Writer item(message, field);
    item.add_string(kKey, key);
    item.add_string(kValueJson, json);
  }
}

void add_time(Writer& message, protozero::pbf_tag_type field, double time) {
  Writer stamp(message, field);
  const double whole = std::floor(time);
  stamp.add_int64(1, static_cast<std::int64_t>(whole));
  stamp.add_int32(2, static_cast<std::int32_t>((time - whole) * 1e9));
}

void add_text(Writer& message, protozero::pbf_tag_type field, const std::string& text) {
  if (!text.empty()) {
    message.add_string(field, printable(text));
  }
}

// A value of the plan: a number if it is one.
std::string plan_json(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(value) ? json_of(value) : wandb_json(text);
}

}  // namespace

std::string wandb_json(double value) { return json_of(value); }
std::string wandb_json(float value) { return json_of(value); }
std::string wandb_json(std::string_view text) { return nlohmann::json(printable(text)).dump(); }

std::string wandb_header(std::int64_t number) {
  return record(number, kHeader, [](Writer& header) {
    Writer version(header, 1);
    version.add_string(1, fmt::format("stoker {}", kVersion));
    version.add_string(2, "0.24.0");  // the oldest wandb that the field numbers were compared with
  });
}

std::string wandb_run(std::int64_t number, const WandbRun& run) {
  return record(number, kRun, [&](Writer& message) {
    add_text(message, 1, run.id);
    add_text(message, 2, run.entity);
    add_text(message, 3, run.project);
    {
      Writer config(message, 4);
      WandbItems items{{"_wandb", "{}"}};
      for (const core::PlanRow& row : run.plan) {
        items.emplace_back(printable(row.key), plan_json(row.value));
      }
      add_items(config, 1, items);
    }
    add_text(message, 8, run.name);
    add_text(message, 9, run.notes);
    add_text(message, 13, run.host);
    if (run.first_step > 0) {
      message.add_int64(14, run.first_step);
    }
    add_time(message, 17, run.start);
    if (run.first_step > 0) {
      message.add_bool(18, true);
    }
  });
}

std::string wandb_history(std::int64_t number, std::int64_t step, const WandbItems& items) {
  return record(number, kHistory, [&](Writer& history) {
    add_items(history, 1, items);
    Writer at(history, 2);
    at.add_int64(1, step);
  });
}

std::string wandb_summary(std::int64_t number, const WandbItems& items) {
  return record(number, kSummary, [&](Writer& summary) { add_items(summary, 1, items); });
}

std::string wandb_stats(std::int64_t number, double time, const WandbItems& items) {
  return record(number, kStats, [&](Writer& stats) {
    add_time(stats, 2, time);
    add_items(stats, 3, items);
  });
}

std::string wandb_exit(std::int64_t number, std::int32_t code, double seconds) {
  return record(number, kExit, [&](Writer& exit) {
    exit.add_int32(1, code);
    exit.add_int32(2, static_cast<std::int32_t>(seconds));
  });
}

}  // namespace stoker::io
