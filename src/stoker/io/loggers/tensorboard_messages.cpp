// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/tensorboard_messages.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

// Field numbers as in the .proto files of TensorBoard 2.20 (tensorboard/compat/proto and plugins/hparams), fields in
// order and without zeros, as protobuf writes them.
namespace stoker::io {
namespace {

using Writer = protozero::pbf_writer;

enum DataClass : std::int32_t { kTensor = 2, kBlobSequence = 3 };
enum TensorType : std::int32_t { kFloat = 1, kDouble = 2, kString = 7 };
enum HParamType : std::int32_t { kTextHParam = 1, kNumberHParam = 3 };

void add_text(Writer& writer, protozero::pbf_tag_type field, std::string_view text) {
  writer.add_string(field, text.data(), text.size());
}

// SummaryMetadata: the plugin for a value.
void add_metadata(Writer& value, std::string_view plugin, const std::string& content, DataClass data_class) {
  Writer metadata(value, 9);
  {
    Writer plugin_data(metadata, 1);
    add_text(plugin_data, 1, plugin);
    if (!content.empty()) {
      plugin_data.add_bytes(2, content);
    }
  }
  metadata.add_enum(4, data_class);
}

// TensorProto of one dimension.
void add_strings(Writer& value, const std::vector<std::string_view>& strings) {
  Writer tensor(value, 8);
  tensor.add_enum(1, kString);
  {
    Writer shape(tensor, 2);
    Writer dimension(shape, 2);
    dimension.add_int64(1, static_cast<std::int64_t>(strings.size()));
  }
  for (const std::string_view each : strings) {
    add_text(tensor, 8, each);
  }
}

// Infinity and NaN are text: the page receives JSON, which has no such numbers.
std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The hparams plugin reads the metadata; the float value is not used.
void add_hparams_value(std::string& summary, std::string_view tag, const std::string& data) {
  Writer writer(summary);
  Writer value(writer, 1);
  add_text(value, 1, tag);
  {
    Writer tensor(value, 8);
    tensor.add_enum(1, kFloat);
    const float nothing = 0;
    tensor.add_packed_float(5, &nothing, &nothing + 1);
  }
  add_metadata(value, "hparams", data, kTensor);
}

}  // namespace

void Summary::scalar(std::string_view tag, float number) {
  Writer writer(bytes_);
  Writer value(writer, 1);
  add_text(value, 1, tag);
  value.add_float(2, number);
}

void Summary::text(std::string_view tag, std::string_view markdown) {
  Writer writer(bytes_);
  Writer value(writer, 1);
  add_text(value, 1, tag);
  add_strings(value, {markdown});
  add_metadata(value, "text", "", kTensor);
}

void Summary::images(std::string_view tag, const std::vector<Png>& images) {
  const std::string width = fmt::format("{}", images.front().width);  // the layout of the page needs one size
  const std::string height = fmt::format("{}", images.front().height);
  std::vector<std::string_view> strings{width, height};
  for (const Png& image : images) {
    strings.emplace_back(image.bytes);
  }
  Writer writer(bytes_);
  Writer value(writer, 1);
  add_text(value, 1, tag);
  add_strings(value, strings);
  add_metadata(value, "images", "", kBlobSequence);
}

// TensorProto [bins, 3]: left, right, count.
void Summary::histogram(std::string_view tag, const core::Histogram& histogram) {
  const std::size_t bins = histogram.counts.size();
  const double width = (histogram.high - histogram.low) / static_cast<double>(bins);
  std::vector<double> cells;
  for (std::size_t i = 0; i < bins; ++i) {
    const auto left = static_cast<double>(i);
    cells.insert(cells.end(), {histogram.low + left * width, histogram.low + (left + 1) * width, histogram.counts[i]});
  }
  Writer writer(bytes_);
  Writer value(writer, 1);
  add_text(value, 1, tag);
  {
    Writer tensor(value, 8);
    tensor.add_enum(1, kDouble);
    {
      Writer shape(tensor, 2);
      for (const std::size_t size : {bins, std::size_t{3}}) {
        Writer dimension(shape, 2);
        dimension.add_int64(1, static_cast<std::int64_t>(size));
      }
    }
    tensor.add_packed_double(6, cells.begin(), cells.end());
  }
  add_metadata(value, "histograms", "", kTensor);
}

void Summary::session_started(const std::vector<core::PlanRow>& plan, double time) {
  std::string data;
  {
    Writer writer(data);
    Writer session(writer, 3);
    for (const core::PlanRow& row : plan) {
      Writer entry(session, 1);
      entry.add_string(1, printable(row.key));
      Writer value(entry, 2);
      if (const auto number = as_number(row.value)) {
        value.add_double(2, *number);
      } else {
        value.add_string(3, printable(row.value));
      }
    }
    session.add_double(5, time);
  }
  add_hparams_value(bytes_, "_hparams_/session_start_info", data);
}

void Summary::experiment(const std::vector<core::PlanRow>& plan, const std::vector<std::string>& metrics, double time) {
  std::string data;
  {
    Writer writer(data);
    Writer experiment(writer, 2);
    experiment.add_double(3, time);
    for (const core::PlanRow& row : plan) {  // no domain: other runs in the same table may have other values
      Writer info(experiment, 4);
      info.add_string(1, printable(row.key));
      info.add_string(3, printable(row.reason));
      info.add_enum(4, as_number(row.value) ? kNumberHParam : kTextHParam);
    }
    for (const std::string& tag : metrics) {
      Writer info(experiment, 5);
      Writer name(info, 1);
      name.add_string(2, tag);
    }
  }
  add_hparams_value(bytes_, "_hparams_/experiment", data);
}

void Summary::session_succeeded(double time) {
  std::string data;
  {
    Writer writer(data);
    Writer session(writer, 4);
    session.add_enum(1, 1);  // STATUS_SUCCESS
    session.add_double(2, time);
  }
  add_hparams_value(bytes_, "_hparams_/session_end_info", data);
}

std::string file_version_event(double time) {
  std::string event;
  Writer writer(event);
  writer.add_double(1, time);
  add_text(writer, 3, "brain.Event:2");
  return event;
}

std::string session_start_event(double time, std::int64_t step) {
  std::string event;
  Writer writer(event);
  writer.add_double(1, time);
  writer.add_int64(2, step);
  Writer log(writer, 7);
  log.add_enum(1, 1);  // START
  return event;
}

std::string summary_event(double time, std::int64_t step, const Summary& summary) {
  std::string event;
  Writer writer(event);
  writer.add_double(1, time);
  if (step != 0) {
    writer.add_int64(2, step);
  }
  writer.add_message(5, summary.bytes());
  return event;
}

}  // namespace stoker::io
