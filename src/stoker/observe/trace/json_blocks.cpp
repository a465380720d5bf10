// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/json_blocks.h"

#include <hwy/highway.h>

#include <algorithm>
#include <bit>

namespace stoker::observe::trace {
namespace {

constexpr std::size_t kBlock = 64;

// Bit i is the exclusive or of bits 0 ... i: between two quotes it is 1.
std::uint64_t inside_quotes(std::uint64_t quotes) {
  for (int shift = 1; shift < 64; shift *= 2) {
    quotes ^= quotes << shift;
  }
  return quotes;
}

}  // namespace

#if HWY_TARGET == HWY_SCALAR
JsonBlock json_block(const char* text) {
  JsonBlock block;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const char c = text[i], folded = static_cast<char>(c | 0x20);
    block.quotes |= c == '"' ? bit : 0;
    block.backslashes |= c == '\\' ? bit : 0;
    block.opens |= folded == '{' ? bit : 0;
    block.closes |= folded == '}' ? bit : 0;
  }
  return block;
}
#else
// [ and { differ in one bit, and so do ] and }.
JsonBlock json_block(const char* text) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr hn::FixedTag<std::uint8_t, 16> kBytes;
  const auto bits = [&](auto mask) {
    std::uint8_t out[8] = {};
    hn::StoreMaskBits(kBytes, mask, out);
    return std::uint64_t{out[0]} | std::uint64_t{out[1]} << 8;
  };
  JsonBlock block;
  for (std::size_t i = 0; i < kBlock; i += 16) {
    const auto bytes = hn::LoadU(kBytes, reinterpret_cast<const std::uint8_t*>(text) + i);
    const auto folded = hn::Or(bytes, hn::Set(kBytes, 0x20));
    block.quotes |= bits(hn::Eq(bytes, hn::Set(kBytes, '"'))) << i;
    block.backslashes |= bits(hn::Eq(bytes, hn::Set(kBytes, '\\'))) << i;
    block.opens |= bits(hn::Eq(folded, hn::Set(kBytes, '{'))) << i;
    block.closes |= bits(hn::Eq(folded, hn::Set(kBytes, '}'))) << i;
  }
  return block;
}
#endif

JsonNesting::Found JsonNesting::walk(std::span<const char> text) {
  Found found;
  for (std::size_t at = 0; at < text.size(); at += kBlock) {
    const std::size_t end = std::min(at + kBlock, text.size());
    if (end - at == kBlock && !escaped_) {
      const JsonBlock block = json_block(text.data() + at);
      if (block.backslashes == 0) {
        const std::uint64_t strings = inside_quotes(block.quotes) ^ (in_string_ ? ~std::uint64_t{0} : 0);
        const int opens = std::popcount(block.opens & ~strings), closes = std::popcount(block.closes & ~strings);
        if (depth_ > closes) {  // no element can end here
          depth_ += opens - closes;
          in_string_ = (strings >> 63) != 0;
          continue;
        }
      }
    }
    if (!walk_slowly(text, at, end, found)) {
      break;
    }
  }
  return found;
}

bool JsonNesting::walk_slowly(std::span<const char> text, std::size_t at, std::size_t end, Found& found) {
  for (; at < end; ++at) {
    const char c = text[at];
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    switch (c) {
      case '"': in_string_ = true; break;
      case '{':
      case '[': ++depth_; break;
      case '}':
      case ']':
        if (--depth_ < 0) {
          found.array_end = at + 1;
          return false;
        }
        found.last_end = depth_ == 0 ? at + 1 : found.last_end;
        break;
      default: break;
    }
  }
  return true;
}

}  // namespace stoker::observe::trace
