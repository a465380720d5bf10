// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/trace_builder.h"

#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/observe/trace/categories.h"

namespace stoker::observe::trace {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Numbers = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

// The value of a JSON string with escapes, such as "\u00e9"; the text itself if it is none.
std::string unescaped(std::string_view json) {
  if (json.find('\\') == std::string_view::npos) {
    return std::string(without_quotes(json));
  }
  simdjson::dom::parser parser;
  std::string_view value;
  const simdjson::padded_string text(json);
  return parser.parse(text).get(value) == simdjson::SUCCESS ? std::string(value) : std::string(without_quotes(json));
}

// The first number in a text: 7 for "stream 7".
int number_in(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  const std::string_view from = digit == std::string_view::npos ? "" : text.substr(digit);
  const auto number = scaled_number(from.substr(0, from.find_first_not_of("0123456789")), 0);
  return number && *number < (1 << 30) ? static_cast<int>(*number) : -1;
}

std::int64_t whole(std::string_view json) { return scaled_number(json, 0).value_or(-1); }

// "[[2,3],[]] [float,]": of the inputs of an operator.
std::string shapes_text(const EventFields& fields) {
  std::string text(fields.shapes);
  if (!fields.types.empty()) {
    text.append("\t").append(fields.types);
  }
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '"'; });
  std::ranges::replace(text, '\t', ' ');
  return text;
}

// "allreduce 1024 Float group default_pg of 8": what a collective did.
std::string collective_text(const EventFields& fields) {
  std::string text(without_quotes(fields.collective));
  const auto add = [&](std::string_view word, std::string_view value) {
    if (!value.empty()) {
      text.append(" ").append(word).append(without_quotes(value));
    }
  };
  add("", fields.elements);
  add("", fields.element_type);
  add("group ", fields.group);
  add("of ", fields.group_size);
  return text;
}

// Limits within which sums and differences of times cannot overflow: clocks up to 2^53 us (a double's whole numbers), a
// year before their zero, and durations of three days.
constexpr std::int64_t kEarliest = -(std::int64_t{1} << 55), kLatest = 9'100'000'000'000'000'000;
constexpr std::int64_t kLongest = std::int64_t{1} << 48;

std::optional<std::int64_t> within(std::string_view json, std::int64_t low, std::int64_t high) {
  const std::optional<std::int64_t> number = scaled_number(json, 3);
  return number && low <= *number && *number <= high ? number : std::nullopt;
}
std::optional<std::int64_t> time_of(std::string_view json) { return within(json, kEarliest, kLatest); }

// Whether the text is a number, however large.
bool is_number(std::string_view json) {
  return !json.empty() && json.find_first_not_of("\"-0123456789.eE+") == std::string_view::npos;
}

int small(std::string_view json) {
  const std::int64_t number = whole(json);
  return number >= 0 && number < (1 << 30) ? static_cast<int>(number) : -1;
}

}  // namespace

struct TraceBuilder::Tables {
  Numbers raw_names, names, tracks, categories;
  std::vector<Kind> kinds;                                     // of categories, for events without a stream
  std::unordered_map<std::uint32_t, std::vector<Event>> open;  // begun, by track
  std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> process_names;
  struct LastTrack {
    std::string process, thread;
    std::uint32_t number = kNone;
  };
  LastTrack last_tracks[2];  // of the host, of devices: most events are on the same as the one before
  std::string scratch;
  std::size_t bytes = 0;  // of these tables and of texts

  std::uint32_t name(std::vector<std::string>& all, std::string_view json) {
    const auto found = raw_names.find(json);
    return found != raw_names.end() ? found->second : name(all, json, unescaped(json));
  }
  // A new raw text and what it means.
  std::uint32_t name(std::vector<std::string>& all, std::string_view json, std::string value) {
    bytes += json.size() + value.size() + 128;
    const auto [place, fresh] = names.emplace(std::move(value), static_cast<std::uint32_t>(all.size()));
    if (fresh) {
      all.push_back(place->first);
    }
    raw_names.emplace(json, place->second);
    return place->second;
  }

  std::uint32_t track(std::vector<Track>& all, const EventFields& fields, bool device) {
    LastTrack& last = last_tracks[device ? 1 : 0];
    if (last.number == kNone || last.process != fields.process || last.thread != fields.thread) {
      last = {std::string(fields.process), std::string(fields.thread), find_track(all, fields, device)};
    }
    return last.number;
  }

  std::uint32_t find_track(std::vector<Track>& all, const EventFields& fields, bool device) {
    scratch.assign(fields.process).append(device ? "|device|" : "|").append(fields.thread);
    const auto [place, fresh] = tracks.emplace(scratch, static_cast<std::uint32_t>(all.size()));
    if (fresh) {
      Track track{.process = unescaped(fields.process), .thread = unescaped(fields.thread), .name = {}};
      bytes += 256;
      all.push_back(std::move(track));
    }
    return place->second;
  }

  std::uint32_t category(Trace& trace, std::string_view json) {
    const std::string_view word = without_quotes(json);
    if (const auto found = categories.find(word); found != categories.end()) {
      return found->second;
    }
    const auto number = static_cast<std::uint32_t>(trace.categories.size());
    categories.emplace(word, number);
    trace.categories.emplace_back(word, 0);
    bytes += 2 * word.size() + 128;
    kinds.push_back(kind_of_category(word, false));
    return number;
  }
};

TraceBuilder::TraceBuilder(std::string file, std::size_t most_bytes)
    : most_bytes_(most_bytes), tables_(std::make_unique<Tables>()) {
  trace_.file = std::move(file);
}

TraceBuilder::~TraceBuilder() = default;

void TraceBuilder::add(const EventFields& fields) {
  ++trace_.entries;
  if ((trace_.entries & 0xFFF) == 0) {
    check_size();
  }
  const std::string_view phase = without_quotes(fields.phase);
  switch (phase.size() == 1 ? phase[0] : '\0') {
    case 'X': add_range(fields); break;
    case 'B': add_half(fields, true); break;
    case 'E': add_half(fields, false); break;
    case 'i':
    case 'I': add_instant(fields); break;
    case 'M': add_metadata(fields); break;
    default: break;  // flows (correlations link the host with the device), counters, what other programs add
  }
}

void TraceBuilder::check_size() {
  const std::size_t bytes =
      tables_->bytes + trace_.events.capacity() * sizeof(Event) + trace_.memory.capacity() * sizeof(MemorySample);
  if (bytes > most_bytes_) {
    fail<DataError>(
        "observe.trace",
        "{}: its first {} events take more than {} MiB of memory; record fewer steps, or use a machine with "
        "more memory",
        trace_.file, trace_.entries, most_bytes_ >> 20);
  }
}

std::uint32_t TraceBuilder::shapes_of(const EventFields& fields) {
  const bool collective = !fields.collective.empty();
  if (!collective && fields.shapes.size() <= 2) {
    return kNone;
  }
  std::string& raw = tables_->scratch;
  raw.assign("\n");  // begins no JSON text, so no name is taken for shapes
  if (collective) {
    for (const std::string_view part :
         {fields.collective, fields.elements, fields.element_type, fields.group, fields.group_size}) {
      raw.append(part).append("\n");
    }
  } else {
    raw.append(fields.shapes).append("\n").append(fields.types);
  }
  if (const auto found = tables_->raw_names.find(raw); found != tables_->raw_names.end()) {
    return found->second;
  }
  const std::string key = raw;
  return tables_->name(trace_.names, key, collective ? collective_text(fields) : shapes_text(fields));
}

// All but the end.
Event TraceBuilder::understood(const EventFields& fields) {
  Tables& tables = *tables_;
  Event event;
  const std::uint32_t category = tables.category(trace_, fields.category);
  ++trace_.categories[category].second;
  event.name = tables.name(trace_.names, fields.name);
  const int stream = small(fields.stream);
  event.kind = tables.kinds[category];
  if (event.kind == Kind::kOther && stream >= 0) {
    event.kind = kind_of_category(trace_.categories[category].first, true);
  }
  event.kind = kind_of_name(event.kind, trace_.names[event.name]);
  const bool device =
      event.on_device() || event.kind == Kind::kDeviceAnnotation || (event.kind == Kind::kSync && stream >= 0);
  event.track = tables.track(trace_.tracks, fields, device);
  if (device && trace_.tracks[event.track].stream < 0) {
    Track& track = trace_.tracks[event.track];
    const int told = small(fields.device), in_thread = number_in(track.thread);
    track.device = told >= 0 ? told : std::max(number_in(track.process), 0);
    track.stream = stream >= 0 ? stream : std::max(in_thread, 0);
  }
  event.correlation = whole(fields.correlation);
  event.waits_on = small(fields.waits_on_stream);
  const std::string_view detail = event.kind == Kind::kSync     ? fields.waits_on_record
                                  : event.kind == Kind::kPython ? fields.python_id
                                  : event.on_device()           ? fields.bytes
                                                                : fields.sequence;
  event.detail = whole(detail);
  event.shapes = shapes_of(fields);
  return event;
}

void TraceBuilder::add_range(const EventFields& fields) {
  if (without_quotes(fields.category) == "Trace") {
    return;  // the span of the whole recording
  }
  const auto begin = time_of(fields.time), duration = within(fields.duration, -kLongest, kLongest);
  if (!begin || !duration) {
    ++(is_number(fields.time) && is_number(fields.duration) ? trace_.damage.out_of_range : trace_.damage.without_time);
    return;
  }
  if (*duration < 0) {
    ++trace_.damage.negative;
    return;
  }
  Event event = understood(fields);
  event.begin = *begin;
  event.end = *begin + *duration;
  trace_.events.push_back(event);
}

void TraceBuilder::add_half(const EventFields& fields, bool begins) {
  const auto time = time_of(fields.time);
  if (!time) {
    ++(is_number(fields.time) ? trace_.damage.out_of_range : trace_.damage.without_time);
    return;
  }
  std::vector<Event>& open = tables_->open[tables_->track(trace_.tracks, fields, false)];
  if (begins) {
    open.push_back(understood(fields));
    open.back().begin = *time;
    tables_->bytes += sizeof(Event);
  } else if (open.empty() || open.back().begin > *time || *time - open.back().begin > kLongest) {
    ++trace_.damage.unpaired;
  } else {
    trace_.events.push_back(open.back());
    trace_.events.back().end = *time;
    open.pop_back();
    tables_->bytes -= sizeof(Event);
  }
}

void TraceBuilder::add_instant(const EventFields& fields) {
  if (without_quotes(fields.name) != "[memory]") {
    return;
  }
  const auto time = time_of(fields.time);
  const auto bytes = scaled_number(fields.bytes, 0);
  if (!time || !bytes) {
    ++trace_.damage.without_time;
    return;
  }
  const bool host = whole(fields.device_type) == 0;  // c10::DeviceType::CPU
  trace_.memory.push_back({.time = *time,
                           .bytes = *bytes,
                           .allocated = whole(fields.allocated),
                           .reserved = whole(fields.reserved),
                           .device = host ? -1 : std::max(small(fields.device), 0)});
}

void TraceBuilder::add_metadata(const EventFields& fields) {
  const std::string_view what = without_quotes(fields.name);
  if (what == "process_name") {
    tables_->process_names.insert_or_assign(std::string(fields.process), unescaped(fields.label));
    tables_->bytes += fields.process.size() + fields.label.size() + 128;
  } else if (what == "thread_name") {
    for (const bool device : {false, true}) {
      tables_->scratch.assign(fields.process).append(device ? "|device|" : "|").append(fields.thread);
      if (const auto found = tables_->tracks.find(tables_->scratch); found != tables_->tracks.end()) {
        trace_.tracks[found->second].name = unescaped(fields.label);
      } else if (!device) {
        const std::uint32_t track = tables_->track(trace_.tracks, fields, false);
        trace_.tracks[track].name = unescaped(fields.label);
      }
    }
  }
}

Trace TraceBuilder::finish() {
  for (const auto& [track, open] : tables_->open) {
    trace_.damage.unpaired += static_cast<std::int64_t>(open.size());
  }
  const auto earlier = [](const Event& a, const Event& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  };
  std::stable_sort(trace_.events.begin(), trace_.events.end(), earlier);
  std::ranges::stable_sort(trace_.memory, {}, &MemorySample::time);
  return std::move(trace_);
}

}  // namespace stoker::observe::trace
