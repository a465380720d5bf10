// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/event_parser.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>

#include "stoker/base/utf8.h"

namespace stoker::observe::trace {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(EventCutter::kPadding >= simdjson::SIMDJSON_PADDING);

struct Wanted {
  std::string_view key;
  std::string_view EventFields::*field;
};
constexpr std::array kFields = std::to_array<Wanted>({
    {"ph", &EventFields::phase},
    {"cat", &EventFields::category},
    {"name", &EventFields::name},
    {"pid", &EventFields::process},
    {"tid", &EventFields::thread},
    {"ts", &EventFields::time},
    {"dur", &EventFields::duration},
});
// The same by several names, in order of the profilers' versions.
constexpr std::array kArgs = std::to_array<Wanted>({
    {"correlation", &EventFields::correlation},
    {"device", &EventFields::device},
    {"stream", &EventFields::stream},
    {"bytes", &EventFields::bytes},
    {"Bytes", &EventFields::bytes},
    {"Input Dims", &EventFields::shapes},
    {"Input dims", &EventFields::shapes},
    {"Input type", &EventFields::types},
    {"Sequence number", &EventFields::sequence},
    {"Python id", &EventFields::python_id},
    {"wait_on_stream", &EventFields::waits_on_stream},
    {"wait_on_cuda_event_record_corr_id", &EventFields::waits_on_record},
    {"name", &EventFields::label},
    {"labels", &EventFields::label},
    {"Total Allocated", &EventFields::allocated},
    {"Total Reserved", &EventFields::reserved},
    {"Device Type", &EventFields::device_type},
    {"Device Id", &EventFields::device},
    {"Collective name", &EventFields::collective},
    {"In msg nelems", &EventFields::elements},
    {"Group size", &EventFields::group_size},
    {"dtype", &EventFields::element_type},
    {"Process Group Name", &EventFields::group},
});

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

// The JSON text of any value.
std::string_view text_of(ondemand::value value) {
  switch (value.type()) {
    case ondemand::json_type::array: return value.get_array().value().raw_json();
    case ondemand::json_type::object: return value.get_object().value().raw_json();
    default: return trimmed(value.raw_json_token());
  }
}

// The key's bytes up to its closing quote. Keys have no escapes in any profiler's output, so they stand for themselves.
std::string_view key_text(ondemand::raw_json_string key) {
  const char* const begin = key.raw();
  const char* end = begin;
  while (*end != '"') {
    ++end;
  }
  return {begin, end};
}

// Keys are told apart by their length and their first and last letter before they are compared.
template <const auto& wanted>
class KeyTable {
 public:
  consteval KeyTable() {
    places_.fill(0);
    for (std::uint8_t i = 0; i < wanted.size(); ++i) {
      std::uint8_t& place = places_[slot(wanted[i].key)];
      next_[i] = place;
      place = static_cast<std::uint8_t>(i + 1);
    }
  }
  [[nodiscard]] std::string_view* field(std::string_view key, EventFields& fields) const {
    if (key.empty()) {
      return nullptr;
    }
    for (std::uint8_t place = places_[slot(key)]; place != 0; place = next_[place - 1U]) {
      if (wanted[place - 1U].key == key) {
        return &(fields.*wanted[place - 1U].field);
      }
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t slot(std::string_view key) {
    return (key.size() * 31 + static_cast<unsigned char>(key.front()) * 7U + static_cast<unsigned char>(key.back())) %
           kSlots;
  }
  std::array<std::uint8_t, kSlots> places_{};       // 1 + index in wanted; 0: none
  std::array<std::uint8_t, wanted.size()> next_{};  // of the same slot
};
constexpr KeyTable<kFields> kFieldTable;
constexpr KeyTable<kArgs> kArgTable;

void read_args(ondemand::value value, EventFields& fields) {
  if (value.type() != ondemand::json_type::object) {
    return;
  }
  for (auto member : value.get_object()) {
    std::string_view* const field = kArgTable.field(key_text(member.key()), fields);
    if (field != nullptr) {
      *field = text_of(member.value());
    }
  }
}

void read_event(ondemand::object event, EventFields& fields) {
  for (auto member : event) {
    const std::string_view key = key_text(member.key());
    if (key == "args") {
      read_args(member.value(), fields);
    } else if (std::string_view* const field = kFieldTable.field(key, fields); field != nullptr) {
      *field = text_of(member.value());
    }
  }
}

std::string repaired(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t good = std::min(first_invalid_utf8(text), text.size());
    result += text.substr(0, good);
    if (good == text.size()) {
      return result;
    }
    result += '?';
    text.remove_prefix(good + 1);
  }
}

}  // namespace

struct EventParser::Json {
  ondemand::parser events;
  simdjson::dom::parser rest;
};

EventParser::EventParser(const std::function<void(const EventFields&)>& take, Damage& damage)
    : take_(take), damage_(damage), json_(std::make_unique<Json>()) {}

EventParser::~EventParser() = default;

void EventParser::parse(const EventCutter::Piece& piece) {
  std::string error;
  const std::int64_t done = parse_array(piece.text, piece.size, error);
  if (!error.empty()) {
    parse_one_by_one(piece, done);
  }
}

// Returns the number of elements before an error.
std::int64_t EventParser::parse_array(char* text, std::size_t size, std::string& error) {
  std::int64_t done = 0;
  try {
    ondemand::document document =
        json_->events.iterate(simdjson::padded_string_view(text, size, size + EventCutter::kPadding));
    for (ondemand::value element : document.get_array()) {
      EventFields fields;
      if (element.type() == ondemand::json_type::object) {
        read_event(element.get_object(), fields);
      }
      take_(fields);
      ++done;
    }
  } catch (const simdjson::simdjson_error& failure) {
    if (failure.error() == simdjson::MEMALLOC) {
      throw std::bad_alloc();
    }
    error = failure.what();
  }
  return done;
}

// One element does not hide the others. Elements end where brackets say so.
void EventParser::parse_one_by_one(const EventCutter::Piece& piece, std::int64_t done) {
  const std::string_view text(piece.text + 1, piece.size - 2);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_of("{[", at);
    if (first == std::string_view::npos) {
      return;
    }
    JsonNesting nesting;
    JsonNesting::Found found;
    std::size_t end = first;
    do {  // up to the closing bracket
      const std::size_t from = end;
      end = std::min(text.find_first_of("}]", from), text.size() - 1) + 1;
      found = nesting.walk(std::span(text).subspan(from, end - from));
    } while (found.last_end == 0 && found.array_end == 0 && end < text.size());
    if (done-- <= 0) {
      parse_alone(text.substr(first, end - first), piece.offset + static_cast<std::int64_t>(first));
    }
    at = end;
  }
}

void EventParser::parse_alone(std::string_view element, std::int64_t offset) {
  const auto attempt = [&](std::string_view content) {
    std::string padded = "[" + std::string(content) + "]";
    const std::size_t size = padded.size();
    padded.resize(size + EventCutter::kPadding);
    std::string error;
    parse_array(padded.data(), size, error);
    return error;
  };
  if (first_invalid_utf8(element) < element.size()) {
    ++damage_.not_utf8;
    const std::string whole = repaired(element);
    if (attempt(whole).empty()) {
      return;
    }
    --damage_.not_utf8;
  }
  const std::string error = attempt(element);
  if (!error.empty() && damage_.malformed++ == 0) {
    damage_.first_malformed = offset;
    damage_.malformed_why = error;
  }
}

void EventParser::parse_rest(const std::string& text, Trace& trace) {
  simdjson::dom::object root;
  if (json_->rest.parse(text).get(root) != simdjson::SUCCESS) {
    return;
  }
  const auto number = [](simdjson::simdjson_result<simdjson::dom::element> value, auto& into) {
    std::int64_t found = 0;
    if (value.get(found) == simdjson::SUCCESS) {
      into = static_cast<std::remove_reference_t<decltype(into)>>(found);
    }
  };
  number(root["distributedInfo"]["rank"], trace.rank);
  number(root["distributedInfo"]["world_size"], trace.world_size);
  simdjson::dom::array devices;
  if (root["deviceProperties"].get(devices) != simdjson::SUCCESS) {
    return;
  }
  for (const simdjson::dom::element each : devices) {
    DeviceFacts facts;
    number(each["id"], facts.id);
    number(each["computeMajor"], facts.compute_major);
    std::string_view name;
    if (each["name"].get(name) == simdjson::SUCCESS) {
      facts.name = name;
    }
    trace.devices.push_back(std::move(facts));
  }
}

}  // namespace stoker::observe::trace
