// SPDX-License-Identifier: Apache-2.0
// A recorded trace of a PyTorch program in memory: its events in order of time, with names and tracks as small numbers.
// Made by read_trace(); read by everything else in this folder. Plain values.
//
// Times are nanoseconds on the trace's own clock, as whole numbers: a double holds the microseconds of today's traces
// to a quarter of a microsecond only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::observe::trace {

enum class Kind : std::uint8_t {
  kOther,
  kOperator,          // of the host: aten::add, autograd nodes
  kRuntime,           // a call of CUDA or HIP, of the runtime or the driver
  kKernel,            // on the device
  kCopy,              // on the device: Memcpy
  kFill,              // on the device: Memset
  kAnnotation,        // a range that the program named on the host: ProfilerStep#3
  kDeviceAnnotation,  // the same on the device
  kPython,            // a Python function
  kSync,              // a record of waiting: a stream, an event, the device
  kOverhead,          // of the profiler
};
// "kernel"; of the JSON output.
[[nodiscard]] std::string_view kind_name(Kind kind);

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct Event {
  std::int64_t begin = 0, end = 0;  // ns; end >= begin
  std::int64_t correlation = -1;    // links a call of the runtime with its work on the device; -1: none
  // Of a copy or fill: bytes. Of a wait: the correlation of the recorded event that it waits for. Of a Python function:
  // its id. Of an autograd node or a forward operator: the sequence number. -1: unknown.
  std::int64_t detail = -1;
  std::uint32_t name = 0;        // index in Trace::names
  std::uint32_t track = 0;       // index in Trace::tracks
  std::uint32_t shapes = kNone;  // index in Trace::names: "[[32,3,224,224],[]] float"; of a collective: its description
  std::int32_t waits_on = -1;    // of a wait: the stream that is waited for; -1: none
  Kind kind = Kind::kOther;

  [[nodiscard]] std::int64_t duration() const { return end - begin; }
  // Work of a device, not of the host, and neither a range nor a wait.
  [[nodiscard]] bool on_device() const { return kind == Kind::kKernel || kind == Kind::kCopy || kind == Kind::kFill; }
};

// A thread of the host, or a stream of a device.
struct Track {
  std::string process, thread;   // as in the file: numbers or words
  std::string name;              // "python3: main"; from the file's metadata; empty if it has none
  int device = -1, stream = -1;  // of a stream of a device
  [[nodiscard]] bool on_device() const { return stream >= 0; }
};

// The memory of a device after an allocation or a release.
struct MemorySample {
  std::int64_t time = 0;        // ns
  std::int64_t bytes = 0;       // allocated, or released if negative
  std::int64_t allocated = -1;  // by tensors then; -1: unknown
  std::int64_t reserved = -1;
  int device = -1;  // -1: of the host
};

struct DeviceFacts {
  int id = 0;
  std::string name;
  int compute_major = 0;  // of CUDA's compute capability; 0: not told
};

// What of a file could not be used, and why. Zero everywhere for a whole trace.
struct Damage {
  std::string end;                    // why the file ends early
  std::int64_t malformed = 0;         // events that are not valid JSON
  std::int64_t first_malformed = -1;  // byte of the first one
  std::string malformed_why;
  std::int64_t without_time = 0;  // complete events without a time or a duration that is a number
  std::int64_t negative = 0;      // with a negative duration
  std::int64_t out_of_range = 0;  // with a time beyond 2^53 us, or a duration beyond 2^48 ns
  std::int64_t unpaired = 0;      // begin without end, or end without begin
  std::int64_t not_utf8 = 0;      // with a name that is not UTF-8; its bad bytes are shown as "?"
  [[nodiscard]] bool any() const;
};

struct Trace {
  std::string file;           // its name, for people
  std::vector<Event> events;  // by begin, then longest first
  std::vector<std::string> names;
  std::vector<Track> tracks;
  std::vector<MemorySample> memory;  // by time
  std::vector<DeviceFacts> devices;
  std::int64_t rank = -1, world_size = -1;                       // of distributed training; -1: not told
  std::int64_t json_bytes = 0;                                   // of the decompressed file
  std::int64_t entries = 0;                                      // of the event array, of all kinds
  std::vector<std::pair<std::string, std::int64_t>> categories;  // complete events, as the file calls them
  Damage damage;

  [[nodiscard]] std::string_view name(const Event& event) const { return names[event.name]; }
  [[nodiscard]] const Track& track(const Event& event) const { return tracks[event.track]; }
};

}  // namespace stoker::observe::trace
