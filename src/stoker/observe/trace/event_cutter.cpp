// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/event_cutter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::observe::trace {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 18;     // bytes read at a time
constexpr std::size_t kMostEvent = std::size_t{1} << 26;  // bytes of one event
constexpr std::size_t kMostRest = std::size_t{1} << 26;   // bytes beside the events
constexpr std::size_t kMostWord = 64;                     // bytes of a key that matters

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

EventCutter::EventCutter(ByteStream& stream, std::string name)
    : stream_(stream), name_(std::move(name)), buffer_(1 + kWindow + kPadding) {}

// Moves what was not handed out to the front and reads more behind it. False at the end of the file.
bool EventCutter::fill() {
  std::memmove(buffer_.data() + 1, buffer_.data() + begin_, end_ - begin_);
  walked_ -= begin_ - 1;
  end_ -= begin_ - 1;
  begin_ = 1;
  if (end_ - begin_ >= kMostEvent) {
    fail<DataError>("observe.trace", "{}: the event at byte {} is larger than {} MiB; it is not a trace, or damaged",
                    name_, read_ - static_cast<std::int64_t>(end_ - begin_), kMostEvent >> 20);
  }
  if (buffer_.size() - kPadding - end_ < kWindow / 2) {
    buffer_.resize(2 * buffer_.size());
  }
  const std::size_t got = stream_.read(std::span(buffer_).subspan(end_, buffer_.size() - kPadding - end_));
  end_ += got;
  read_ += static_cast<std::int64_t>(got);
  return got > 0;
}

// The caller is done with its piece.
void EventCutter::release() {
  if (held_end_ > 0) {
    buffer_[held_end_] = held_byte_;
    begin_ = std::exchange(held_end_, 0);
  }
}

// The events from begin_ to end as a piece; empty if there are none.
std::optional<EventCutter::Piece> EventCutter::take(std::size_t end) {
  std::size_t first = begin_;
  while (first < end && (is_space(buffer_[first]) || buffer_[first] == ',')) {
    ++first;
  }
  if (first == end) {
    begin_ = end;
    return std::nullopt;
  }
  const std::int64_t offset = read_ - static_cast<std::int64_t>(end_ - first);
  buffer_[first - 1] = '[';
  held_end_ = end;
  held_byte_ = std::exchange(buffer_[end], ']');
  return Piece{buffer_.data() + first - 1, end - first + 2, offset};
}

std::optional<EventCutter::Piece> EventCutter::next() {
  release();
  while (place_ != Place::kEnd) {
    if (place_ == Place::kOutside) {
      pass_outside();
      continue;
    }
    const JsonNesting::Found found = nesting_.walk(std::span(buffer_).subspan(walked_, end_ - walked_));
    std::optional<Piece> piece;
    if (found.array_end > 0) {
      const std::size_t bracket = walked_ + found.array_end - 1;
      walked_ = bracket;
      place_ = Place::kOutside;
      piece = take(bracket);
    } else {
      const std::size_t whole = walked_ + found.last_end;
      walked_ = end_;
      piece = found.last_end > 0 ? take(whole) : std::nullopt;
      if (found.last_end == 0 && !fill()) {
        end_of_file();
      }
    }
    if (piece) {
      return piece;
    }
  }
  return std::nullopt;
}

void EventCutter::end_of_file() {
  const bool inside_event = place_ == Place::kEvents && nesting_.inside();
  damage_ = stream_.damage();
  if (damage_.empty() && !started_) {
    fail<DataError>("observe.trace", "{}: is empty", name_);
  }
  if (inside_event || (level_ > 0 && !bare_)) {
    damage_ = fmt::format("{} at byte {}{}", inside_event ? "it ends in the middle of an event" : "it ends early",
                          read_, damage_.empty() ? "" : ": " + damage_);
  }
  place_ = Place::kEnd;
}

void EventCutter::pass_outside() {
  while (true) {
    while (begin_ < end_) {
      const char c = buffer_[begin_++];
      in_string_ ? outside_string(c) : outside_byte(c);
      if (place_ != Place::kOutside) {
        walked_ = begin_;
        return;
      }
    }
    if (rest_.size() > kMostRest) {
      fail<DataError>("observe.trace", "{}: holds more than {} MiB beside its trace events; it is not a trace", name_,
                      kMostRest >> 20);
    }
    walked_ = begin_;
    if (!fill()) {
      end_of_file();
      return;
    }
  }
}

void EventCutter::outside_string(char c) {
  rest_ += c;
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    return;
  }
  if (level_ == 1 && !named_ && word_.size() < kMostWord) {
    word_ += c;
  }
}

void EventCutter::outside_byte(char c) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (is_space(c) || (!started_ && kByteOrderMark.find(c) != std::string_view::npos)) {
    return;
  }
  const bool array_here = c == '[' && (started_ ? level_ == 1 && named_ && word_ == "traceEvents" : true);
  if (!started_ && c != '{' && c != '[') {
    fail<DataError>("observe.trace", "{}: is not JSON: it begins with \"{}\"", name_, printable(std::string(1, c)));
  }
  if (array_here) {
    bare_ = !std::exchange(started_, true);
    rest_ += '[';
    ++level_;
    place_ = Place::kEvents;
    nesting_ = {};
    return;
  }
  started_ = true;
  rest_ += c;
  switch (c) {
    case '"':
      in_string_ = true;
      if (level_ == 1 && !named_) {
        word_.clear();
      }
      break;
    case ':': named_ = level_ == 1 || named_; break;
    case ',': named_ = level_ > 1 && named_; break;
    case '{':
    case '[': ++level_; break;
    case '}':
    case ']': place_ = --level_ > 0 ? place_ : Place::kEnd; break;
    default: break;
  }
}

}  // namespace stoker::observe::trace
