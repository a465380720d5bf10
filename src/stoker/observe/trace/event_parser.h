// SPDX-License-Identifier: Apache-2.0
// Parses pieces of a trace's event array with simdjson and hands each entry over as EventFields. What is not valid JSON
// is counted and passed over; names that are not UTF-8 are repaired. Used by the reader of traces. For one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "stoker/observe/trace/event_cutter.h"
#include "stoker/observe/trace/event_fields.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

class EventParser {
 public:
  // Both outlive the parser.
  EventParser(const std::function<void(const EventFields&)>& take, Damage& damage);
  ~EventParser();
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;

  void parse(const EventCutter::Piece& piece);
  // What the file says beside its events: rank and devices. text: EventCutter::rest(). A text that is not valid
  // JSON changes nothing.
  void parse_rest(const std::string& text, Trace& trace);

 private:
  struct Json;  // simdjson's parser and its buffers
  std::int64_t parse_array(char* text, std::size_t size, std::string& error);
  void parse_one_by_one(const EventCutter::Piece& piece, std::int64_t done);
  void parse_alone(std::string_view element, std::int64_t offset);

  const std::function<void(const EventFields&)>& take_;
  Damage& damage_;
  std::unique_ptr<Json> json_;
};

}  // namespace stoker::observe::trace
