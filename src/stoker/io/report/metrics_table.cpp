// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/metrics_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

constexpr std::size_t kMostScalars = 64, kMostMetrics = 256;
constexpr std::string_view kSkipped = "skipped";

// Splits an RFC 4180 row into fields, which is reused from row to row.
void split_row(std::string_view line, std::vector<std::string>& fields) {
  std::size_t used = 0;
  const auto next = [&]() -> std::string& {
    if (used == fields.size()) {
      fields.emplace_back();
    }
    fields[used].clear();
    return fields[used++];
  };
  std::string* field = &next();
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      *field += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      field = &next();
    } else if (c != '\r' || quoted) {
      *field += c;
    }
  }
  fields.resize(used);
}

std::optional<std::int64_t> whole_number(const std::string& field) {
  std::int64_t value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  return stop == end && error == std::errc() ? std::optional(value) : std::nullopt;
}

// Empty for an empty field; sets ok to false if it is not a number.
std::optional<double> number(const std::string& field, bool& ok) {
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (field.empty()) {
    return std::nullopt;
  }
  if (stop != end || (error != std::errc() && error != std::errc::result_out_of_range)) {
    ok = false;
    return std::nullopt;
  }
  return value;
}

class Reader {
 public:
  explicit Reader(std::size_t most) : most_(most) {}

  void line(std::string_view text) {
    split_row(text, fields_);
    if (header_.empty()) {
      header();
    } else if (fields_.size() != header_.size()) {
      ++table_.damaged;
    } else if (fields_[kind_] == "step") {
      step();
    } else if (fields_[kind_] == "eval") {
      evaluated();
    }
  }
  MetricsTable take() { return std::move(table_); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  [[nodiscard]] std::size_t find(std::string_view name) const {
    const auto found = std::ranges::find(header_, name);
    return found == header_.end() ? kNone : static_cast<std::size_t>(found - header_.begin());
  }

  void header() {
    header_ = fields_;
    constexpr std::array<std::string_view, 5> fixed{"lr", "seconds", "data_wait", "memory_bytes", "samples"};
    for (const std::string_view name : fixed) {
      place_.push_back(find(name));
    }
    place_.push_back(kNone);  // throughput is computed
    kind_ = find("kind"), step_ = find("step"), split_ = find("split"), metric_ = find("metric"),
    value_ = find("value");
    if (std::ranges::max({kind_, step_, split_, metric_, value_}) == kNone) {
      ++table_.damaged;
      header_ = {"unknown"};  // matches no row
      kind_ = 0;
      return;
    }
    for (std::size_t i = value_ + 1; i < header_.size(); ++i) {
      if (table_.scalars.size() == kMostScalars) {
        ++table_.left_out;
        continue;
      }
      skipped_ = header_[i] == kSkipped ? place_.size() : skipped_;
      place_.push_back(i);
      table_.scalars.push_back(printable(header_[i]));
    }
    table_.steps = Downsample(place_.size(), most_);
    row_.resize(place_.size());
  }

  void step() {
    bool ok = true;
    for (std::size_t i = 0; i < place_.size(); ++i) {
      row_[i] = place_[i] == kNone ? std::nullopt : number(fields_[place_[i]], ok);
    }
    const std::optional<std::int64_t> at = whole_number(fields_[step_]);
    if (!ok || !at) {
      ++table_.damaged;
      return;
    }
    const double seconds = row_[MetricsTable::kSeconds].value_or(0), samples = row_[MetricsTable::kSamples].value_or(0);
    if (seconds > 0 && samples > 0) {
      row_[MetricsTable::kThroughput] = samples / seconds;
    }
    ++table_.rows;
    table_.last_step = *at;
    table_.seconds += seconds;
    table_.samples += samples;
    table_.data_wait += row_[MetricsTable::kDataWait].value_or(0);
    table_.steps.add(table_.last_step, table_.seconds, row_);
    watch();
  }

  // Steps that need attention.
  void watch() {
    for (std::size_t i = MetricsTable::kFirstScalar; i < row_.size(); ++i) {
      if (row_[i] && !std::isfinite(*row_[i])) {
        const std::string& name = table_.scalars[i - MetricsTable::kFirstScalar];
        table_.not_finite.add(table_.last_step, fmt::format("{} is {}", name, *row_[i]));
      }
    }
    if (skipped_ != kNone && row_[skipped_].value_or(0) > 0) {
      table_.skipped.add(table_.last_step, fmt::format("step {} was skipped", table_.last_step));
    }
  }

  void evaluated() {
    bool ok = true;
    const std::optional<std::int64_t> at = whole_number(fields_[step_]);
    const std::optional<double> value = number(fields_[value_], ok);
    if (!ok || !at) {
      ++table_.damaged;
      return;
    }
    const std::string split = printable(fields_[split_]), metric = printable(fields_[metric_]);
    auto found = std::ranges::find_if(
        table_.evaluated, [&](const EvaluatedSeries& each) { return each.split == split && each.metric == metric; });
    if (found == table_.evaluated.end()) {
      if (table_.evaluated.size() == kMostMetrics) {
        ++table_.left_out;
        return;
      }
      table_.evaluated.push_back({split, metric, Downsample(1, most_), {}});
      found = table_.evaluated.end() - 1;
    }
    found->points.add(*at, table_.seconds, {&value, 1});
    found->last = value;
    if (value && !std::isfinite(*value)) {
      table_.not_finite.add(*at, fmt::format("{} {} is {}", split, metric, *value));
    }
  }

  std::size_t most_;
  MetricsTable table_;
  std::vector<std::string> fields_, header_;
  std::vector<std::size_t> place_;  // position in the row of each column of the table, or kNone
  std::vector<std::optional<double>> row_;
  std::size_t kind_ = 0, step_ = 0, split_ = 0, metric_ = 0, value_ = 0, skipped_ = kNone;
};

}  // namespace

void Occurrences::add(std::int64_t step, std::string text) {
  ++count;
  if (first.size() < kKept) {
    first.push_back({step, std::move(text)});
  }
}

MetricsTable read_metrics_table(const std::filesystem::path& csv, std::size_t most) {
  Reader reader(most);
  each_line(csv, [&](std::string_view line) {
    reader.line(line);
    return true;
  });
  return reader.take();
}

}  // namespace stoker::io
