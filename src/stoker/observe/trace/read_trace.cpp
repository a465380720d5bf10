// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/read_trace.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/tar_header.h"
#include "stoker/observe/trace/byte_stream.h"
#include "stoker/observe/trace/event_cutter.h"
#include "stoker/observe/trace/event_parser.h"
#include "stoker/observe/trace/trace_builder.h"

namespace stoker::observe::trace {
namespace {

namespace fs = std::filesystem;

// Words of PyTorch's profilers: a trace without any of these kinds is another program's.
bool is_of_pytorch(const Trace& trace) {
  return std::ranges::any_of(trace.events, [](const Event& event) { return event.kind != Kind::kOther; });
}

[[noreturn]] void refuse(const Trace& trace) {
  if (trace.entries == 0) {
    fail<DataError>("observe.trace", "{}: holds no trace events (\"traceEvents\"); it is JSON, but not a trace{}",
                    trace.file, trace.damage.end.empty() ? "" : fmt::format(", and {}", trace.damage.end));
  }
  std::string words;
  for (const auto& [category, count] : trace.categories) {
    if (!category.empty() && words.size() < 80) {
      words += (words.empty() ? "" : ", ") + printable(category);
    }
  }
  fail<DataError>("observe.trace",
                  "{}: holds {} trace events, but none that PyTorch's profiler writes{}; it seems to be a trace of "
                  "another program",
                  trace.file, trace.entries, words.empty() ? "" : fmt::format(" (its categories are {})", words));
}

Trace read_stream(ByteStream& stream, const std::string& name, const ReadOptions& options) {
  TraceBuilder builder(name, options.most_bytes);
  const std::function<void(const EventFields&)> take = [&](const EventFields& fields) { builder.add(fields); };
  EventParser parser(take, builder.damage());
  EventCutter cutter(stream, name);
  while (const auto piece = cutter.next()) {
    parser.parse(*piece);
    if (options.progress) {
      options.progress(cutter.bytes_read());
    }
  }
  builder.damage().end = cutter.damage();
  parser.parse_rest(cutter.damage().empty() ? cutter.rest() : cutter.rest() + "]}", builder.trace());
  builder.trace().json_bytes = cutter.bytes_read();
  Trace trace = builder.finish();
  if (!is_of_pytorch(trace)) {
    refuse(trace);
  }
  return trace;
}

bool named_like_trace(const std::string& path) { return path.ends_with(".json") || path.ends_with(".json.gz"); }

// The traces of a folder or an archive. One that is refused is passed over, unless all are.
class Several {
 public:
  Several(const ReadOptions& options, std::vector<Trace>& traces)
      : options_(options), traces_(traces), before_(traces.size()) {}

  template <typename Read>
  void attempt(const Read& read) {
    try {
      read();
    } catch (const DataError& error) {
      refused_.push_back(error);
    }
  }
  // DataError with the first reason if nothing could be used.
  void finish() const {
    if (traces_.size() == before_ && !refused_.empty()) {
      throw DataError(refused_.front());
    }
    for (const DataError& reason : refused_) {
      if (options_.passed_over) {
        options_.passed_over(reason.what());
      }
    }
  }

 private:
  const ReadOptions& options_;
  std::vector<Trace>& traces_;
  std::size_t before_;
  std::vector<DataError> refused_;
};

void read_archive(ByteStream& archive, const std::string& name, const ReadOptions& options,
                  std::vector<Trace>& traces) {
  TarMembers members(archive);
  Several several(options, traces);
  while (auto member = members.next()) {
    if (named_like_trace(member->path)) {
      several.attempt(
          [&] { traces.push_back(read_stream(*member->bytes, name + ":" + printable(member->path), options)); });
    }
  }
  several.finish();
  if (!members.damage().empty()) {
    if (traces.empty()) {
      fail<DataError>("observe.trace", "{}: {}", name, members.damage());
    }
    traces.back().damage.end = members.damage();
  }
}

void read_file(const fs::path& path, const ReadOptions& options, std::vector<Trace>& traces) {
  const std::string name = printable(path.native());
  auto stream = open_stream(path);
  std::string head(kTarBlock, '\0');
  head.resize(stream->read(head));
  const bool archive = TarMembers::begins(head);
  stream = put_back(std::move(head), std::move(stream));
  if (archive) {
    read_archive(*stream, name, options, traces);
  } else {
    traces.push_back(read_stream(*stream, name, options));
  }
}

std::vector<fs::path> traces_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (named_like_trace(it->path().native()) && it->is_regular_file(error)) {
      paths.push_back(it->path());
    }
  }
  if (error) {
    fail<DataError>("observe.trace", "{}: cannot be read: {}", printable(folder.native()), error.message());
  }
  if (paths.empty()) {
    fail<DataError>("observe.trace", "{}: holds no traces (*.json, *.json.gz)", printable(folder.native()));
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

std::vector<Trace> read_traces(const fs::path& path, const ReadOptions& options) {
  std::vector<Trace> traces;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    Several several(options, traces);
    for (const fs::path& each : traces_in(path)) {
      several.attempt([&] { read_file(each, options, traces); });
    }
    several.finish();
  } else {
    read_file(path, options, traces);
  }
  if (traces.empty()) {
    fail<DataError>("observe.trace", "{}: holds no traces (*.json, *.json.gz)", printable(path.native()));
  }
  std::ranges::stable_sort(traces, {}, &Trace::rank);
  return traces;
}

bool Damage::any() const {
  return !end.empty() || malformed + without_time + negative + out_of_range + unpaired + not_utf8 > 0;
}

}  // namespace stoker::observe::trace
