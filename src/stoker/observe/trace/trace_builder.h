// SPDX-License-Identifier: Apache-2.0
// Makes a Trace from the entries of its event array: understands their values, gives names and tracks numbers, pairs
// begins with ends, and sorts. Used by the reader of traces. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "stoker/observe/trace/event_fields.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

class TraceBuilder {
 public:
  // most_bytes: of memory for the trace; DataError beyond it. file: for messages.
  TraceBuilder(std::string file, std::size_t most_bytes);
  ~TraceBuilder();
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  void add(const EventFields& fields);
  [[nodiscard]] Damage& damage() { return trace_.damage; }
  // Once, at the end.
  [[nodiscard]] Trace finish();
  [[nodiscard]] Trace& trace() { return trace_; }

 private:
  struct Tables;
  void add_range(const EventFields& fields);
  void add_half(const EventFields& fields, bool begins);
  void add_instant(const EventFields& fields);
  void add_metadata(const EventFields& fields);
  [[nodiscard]] Event understood(const EventFields& fields);
  [[nodiscard]] std::uint32_t shapes_of(const EventFields& fields);
  void check_size();

  Trace trace_;
  std::size_t most_bytes_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace stoker::observe::trace
