// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/safetensors_dtype.h"

namespace stoker::io {
namespace {

constexpr std::string_view kWhere = "io.safetensors";

// Follows the parser event by event and stops it at the first unexpected item, so nesting deeper than the three levels
// of the format is never built.
class HeaderSax final : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string error;

  bool null() override { return place_ == Place::kTop && key_ == "__metadata__" ? true : refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t value) override { return refuse(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return refuse(text); }
  bool binary(binary_t&) override { return refuse("bytes"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape && value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      entry().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && offsets_ < 2) {
      (offsets_++ == 0 ? entry().begin : entry().end) = value;
      return true;
    }
    return refuse(fmt::format("{}", value));
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ == Place::kTensor && key_ == "dtype") {
      entry().dtype = std::move(value);
      return true;
    }
    return refuse("a string");
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      header.entries.push_back({.name = key_, .dtype = {}, .shape = {}, .begin = 0, .end = 0});
    } else {
      return refuse("an object");
    }
    seen_[static_cast<int>(place_)].clear();
    return true;
  }
  bool key(string_t& value) override {
    key_ = value;
    if (!seen_[static_cast<int>(place_)].insert(value).second) {
      error = fmt::format("the header has the key \"{}\" twice", printable(value));
      return false;
    }
    if (place_ == Place::kTensor && value != "dtype" && value != "shape" && value != "data_offsets") {
      error = fmt::format("tensor \"{}\" has the key \"{}\"; expected dtype, shape and data_offsets",
                          printable(entry().name), printable(value));
      return false;
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kTensor && seen_[static_cast<int>(place_)].size() != 3) {
      error = fmt::format("tensor \"{}\" has no dtype, shape or data_offsets", printable(entry().name));
      return false;
    }
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") {
      return refuse("an array");
    }
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2) {
      error = fmt::format("tensor \"{}\" must have two data_offsets, got {}", printable(entry().name), offsets_);
      return false;
    }
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    error = fmt::format("the header is not valid JSON at byte {}", position);
    return false;
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };

  SafetensorsEntry& entry() { return header.entries.back(); }
  bool refuse(std::string_view what) {
    error = place_ == Place::kOutside ? fmt::format("the header must be a JSON object, got {}", what)
                                      : fmt::format("the header has {} at key \"{}\", which is not allowed there",
                                                    printable(what), printable(key_));
    return false;
  }

  Place place_ = Place::kOutside;
  std::string key_;
  std::set<std::string> seen_[6];
  int offsets_ = 0;
};

// Bytes of the tensor; CheckpointError if the product overflows or is not a whole number of bytes.
std::uint64_t bytes_of(const std::string& file, const SafetensorsEntry& entry) {
  const int rank = dtype_rank(entry.dtype);
  if (rank < 0) {
    fail<CheckpointError>(kWhere, "{}: tensor \"{}\" has the unknown dtype \"{}\"", file, printable(entry.name),
                          printable(entry.dtype));
  }
  std::uint64_t bits = 1;
  std::int64_t strides = 1;  // must not overflow for a tensor of this shape
  bool overflow = false;
  for (const std::int64_t extent : entry.shape) {
    overflow |= __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits);
    overflow |= __builtin_mul_overflow(strides, std::max<std::int64_t>(extent, 1), &strides);
  }
  overflow |= __builtin_mul_overflow(bits, kSafetensorsDtypes[static_cast<std::size_t>(rank)].bits, &bits);
  if (overflow || bits % 8 != 0) {
    fail<CheckpointError>(kWhere, "{}: tensor \"{}\": {} of shape [{}] is not a whole number of bytes", file,
                          printable(entry.name), entry.dtype, fmt::join(entry.shape, ", "));
  }
  return bits / 8;
}

}  // namespace

SafetensorsHeader parse_header(const std::string& name, std::string_view text, std::uint64_t file_bytes) {
  HeaderSax sax;
  // The parser treats a NUL as the end and skips a byte order mark; a header must not contain either.
  if (text.find('\0') != text.npos || text.starts_with("\xEF\xBB\xBF")) {
    fail<CheckpointError>(kWhere,
                          "{}: the header is not valid JSON: it contains a NUL or begins with a byte order mark", name);
  }
  if (!nlohmann::json::sax_parse(text, &sax) || !sax.error.empty()) {
    fail<CheckpointError>(kWhere, "{}: {}", name, sax.error);
  }
  SafetensorsHeader header = std::move(sax.header);
  header.data_start = 8 + text.size();
  header.file_bytes = file_bytes;
  std::ranges::stable_sort(header.entries, {}, [](const auto& entry) { return std::tuple(entry.begin, entry.end); });
  std::uint64_t next = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != next || entry.end < entry.begin) {
      fail<CheckpointError>(kWhere, "{}: tensor \"{}\" is at bytes {} to {}, but the previous one ends at {}", name,
                            printable(entry.name), entry.begin, entry.end, next);
    }
    const std::uint64_t bytes = bytes_of(name, entry);
    if (entry.end - entry.begin != bytes) {
      fail<CheckpointError>(kWhere, "{}: tensor \"{}\": {} of shape [{}] needs {} bytes, but data_offsets give {}",
                            name, printable(entry.name), entry.dtype, fmt::join(entry.shape, ", "), bytes,
                            entry.end - entry.begin);
    }
    next = entry.end;
  }
  if (next != file_bytes - header.data_start) {
    fail<CheckpointError>(kWhere, "{}: the tensors need {} bytes after the header, but the file has {}", name, next,
                          file_bytes - header.data_start);
  }
  return header;
}

}  // namespace stoker::io
