// SPDX-License-Identifier: Apache-2.0
// Follows the nesting of a JSON text, 64 bytes at a time, without parsing it: where a top-level element of an array
// ends. Used by EventCutter. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::observe::trace {

inline constexpr std::size_t kJsonBlock = 64;
// Which of 64 bytes are quotes, backslashes, opening brackets and braces, closing ones. Bit i is byte i.
struct JsonBlock {
  std::uint64_t quotes = 0, backslashes = 0, opens = 0, closes = 0;
};
// Of `count` blocks that begin at text.
void json_blocks(const char* text, std::size_t count, JsonBlock* blocks);

// Walks over the elements of an array whose opening bracket was just passed.
class JsonNesting {
 public:
  struct Found {
    std::size_t last_end = 0;   // after the last element (object or array) that ended; 0: none did
    std::size_t array_end = 0;  // after the bracket that closes the array; 0: it is still open
  };
  // Continues with text; offsets are relative to it. Stops after the end of the array.
  Found walk(std::span<const char> text);
  // Whether the text so far ends inside an element.
  [[nodiscard]] bool inside() const { return depth_ > 0 || in_string_; }

 private:
  void walk_block(const JsonBlock& block, std::size_t at, Found& found);
  // One byte at a time: where a backslash stands, or less than a block is left.
  void walk_slowly(std::span<const char> text, std::size_t at, std::size_t end, Found& found);
  bool close(std::size_t after, Found& found);

  std::int64_t depth_ = 0;  // of brackets within the array
  bool in_string_ = false;
  bool escaped_ = false;  // the next byte of a string stands for itself
};

}  // namespace stoker::observe::trace
