// SPDX-License-Identifier: Apache-2.0
// Highway compiles the first half of this file once for each family of processors and selects the best one at run time.
#include "stoker/observe/trace/json_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/observe/trace/json_blocks.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace stoker::observe::trace::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // a processor without any of the families
void find_blocks(const char* text, std::size_t count, JsonBlock* blocks) {
  for (std::size_t at = 0; at < count * kJsonBlock; ++at) {
    JsonBlock& block = blocks[at / kJsonBlock];
    block = at % kJsonBlock == 0 ? JsonBlock{} : block;
    const std::uint64_t bit = std::uint64_t{1} << at % kJsonBlock;
    const char c = text[at], folded = static_cast<char>(c | 0x20);
    block.quotes |= c == '"' ? bit : 0;
    block.backslashes |= c == '\\' ? bit : 0;
    block.opens |= folded == '{' ? bit : 0;
    block.closes |= folded == '}' ? bit : 0;
  }
}
#else
// [ and { differ in one bit, and so do ] and }.
void find_blocks(const char* text, std::size_t count, JsonBlock* blocks) {
  const hn::CappedTag<std::uint8_t, kJsonBlock> kBytes;
  const std::size_t lanes = hn::Lanes(kBytes);
  const auto fold = hn::Set(kBytes, 0x20), quote = hn::Set(kBytes, '"'), backslash = hn::Set(kBytes, '\\'),
             open = hn::Set(kBytes, '{'), close = hn::Set(kBytes, '}');
  std::array<std::uint8_t, kJsonBlock / 8 + 8> quotes{}, backslashes{}, opens{}, closes{};
  for (std::size_t block = 0; block < count; ++block) {
    for (std::size_t i = 0; i < kJsonBlock; i += lanes) {
      const auto bytes = hn::LoadU(kBytes, reinterpret_cast<const std::uint8_t*>(text) + block * kJsonBlock + i);
      const auto folded = hn::Or(bytes, fold);
      hn::StoreMaskBits(kBytes, hn::Eq(bytes, quote), quotes.data() + i / 8);
      hn::StoreMaskBits(kBytes, hn::Eq(bytes, backslash), backslashes.data() + i / 8);
      hn::StoreMaskBits(kBytes, hn::Eq(folded, open), opens.data() + i / 8);
      hn::StoreMaskBits(kBytes, hn::Eq(folded, close), closes.data() + i / 8);
    }
    std::memcpy(&blocks[block].quotes, quotes.data(), sizeof(std::uint64_t));
    std::memcpy(&blocks[block].backslashes, backslashes.data(), sizeof(std::uint64_t));
    std::memcpy(&blocks[block].opens, opens.data(), sizeof(std::uint64_t));
    std::memcpy(&blocks[block].closes, closes.data(), sizeof(std::uint64_t));
  }
}
#endif
}  // namespace stoker::observe::trace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::observe::trace {

HWY_EXPORT(find_blocks);

void json_blocks(const char* text, std::size_t count, JsonBlock* blocks) {
  HWY_DYNAMIC_DISPATCH(find_blocks)(text, count, blocks);
}

namespace {

constexpr std::size_t kBlocksAtOnce = 64;

// Bit i is the exclusive or of bits 0 ... i: between two quotes it is 1.
std::uint64_t inside_quotes(std::uint64_t quotes) {
  for (int shift = 1; shift < 64; shift *= 2) {
    quotes ^= quotes << shift;
  }
  return quotes;
}

}  // namespace

JsonNesting::Found JsonNesting::walk(std::span<const char> text) {
  Found found;
  std::array<JsonBlock, kBlocksAtOnce> blocks;
  for (std::size_t at = 0; at < text.size() && found.array_end == 0;) {
    const std::size_t count = std::min((text.size() - at) / kJsonBlock, kBlocksAtOnce);
    json_blocks(text.data() + at, count, blocks.data());
    for (std::size_t i = 0; i < count && found.array_end == 0; ++i, at += kJsonBlock) {
      if (escaped_ || blocks[i].backslashes != 0) {
        walk_slowly(text, at, at + kJsonBlock, found);
      } else {
        walk_block(blocks[i], at, found);
      }
    }
    if (count == 0) {
      walk_slowly(text, at, text.size(), found);
      at = text.size();
    }
  }
  return found;
}

void JsonNesting::walk_block(const JsonBlock& block, std::size_t at, Found& found) {
  const std::uint64_t strings = inside_quotes(block.quotes) ^ (in_string_ ? ~std::uint64_t{0} : 0);
  in_string_ = (strings >> 63) != 0;
  for (std::uint64_t rest = (block.opens | block.closes) & ~strings; rest != 0; rest &= rest - 1) {
    if ((block.opens & rest & -rest) != 0) {
      ++depth_;
    } else if (!close(at + static_cast<std::size_t>(std::countr_zero(rest)) + 1, found)) {
      return;
    }
  }
}

// A bracket closes just before `after`. False: it closes the array.
bool JsonNesting::close(std::size_t after, Found& found) {
  if (--depth_ < 0) {
    found.array_end = after;
    return false;
  }
  found.last_end = depth_ == 0 ? after : found.last_end;
  return true;
}

void JsonNesting::walk_slowly(std::span<const char> text, std::size_t at, std::size_t end, Found& found) {
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
        if (!close(at + 1, found)) {
          return;
        }
        break;
      default: break;
    }
  }
}

}  // namespace stoker::observe::trace
#endif
