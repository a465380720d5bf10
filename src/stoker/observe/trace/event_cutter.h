// SPDX-License-Identifier: Apache-2.0
// Cuts a trace file, which is JSON with one long array of events, into pieces of whole events, so that a file of any
// size is read with a few megabytes. Used by the reader of traces. For one thread.
//
// Formats: "Trace Event Format", JSON object format ({"traceEvents": [...], ...}) and JSON array format ([...]).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/observe/trace/byte_stream.h"
#include "stoker/observe/trace/json_blocks.h"

namespace stoker::observe::trace {

class EventCutter {
 public:
  // stream outlives the cutter. name: of the file, for messages.
  EventCutter(ByteStream& stream, std::string name);

  struct Piece {
    char* text = nullptr;     // a JSON array of whole events; valid until the next call
    std::size_t size = 0;     // bytes; at least kPadding readable and writable bytes follow
    std::int64_t offset = 0;  // of its first event, in the decompressed file
  };
  static constexpr std::size_t kPadding = 64;  // at least simdjson's SIMDJSON_PADDING

  // Empty after the last whole event. DataError if the file holds no JSON, no array of events, an event larger than
  // 64 MiB, or more than 64 MiB beside the events.
  [[nodiscard]] std::optional<Piece> next();

  // After the last piece: the JSON object without its events.
  [[nodiscard]] const std::string& rest() const { return rest_; }
  // After the last piece: what is wrong with the end of the file, such as "it ends in the middle of an event"; empty if
  // it is whole.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] std::int64_t bytes_read() const { return read_; }

 private:
  enum class Place { kOutside, kEvents, kEnd };
  bool fill();
  // Reads what is outside the events: up to their opening bracket, or to the end of the file.
  void pass_outside();
  void outside_byte(char c);
  void outside_string(char c);
  std::optional<Piece> take(std::size_t end);
  void release();
  void end_of_file();

  ByteStream& stream_;
  std::string name_;
  std::vector<char> buffer_;         // [0] is for a bracket
  std::size_t begin_ = 1, end_ = 1;  // the bytes of it that were not handed out
  std::size_t walked_ = 1;           // up to here nesting_ has seen them
  std::size_t held_end_ = 0;         // of the piece that the caller holds; 0: none
  char held_byte_ = 0;               // the byte there, which a bracket replaces
  std::int64_t read_ = 0;            // bytes of the stream so far
  Place place_ = Place::kOutside;
  JsonNesting nesting_;
  std::string rest_, damage_;
  bool bare_ = false;     // the JSON array format
  bool started_ = false;  // a bracket or brace was seen
  int level_ = 0;         // of nesting outside the events
  std::string word_;      // the last string at level 1
  bool named_ = false;    // word_ is a key: its colon was seen, and its value has not begun
  bool in_string_ = false, escaped_ = false;
};

}  // namespace stoker::observe::trace
