// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/byte_pairs.h"

#include <algorithm>
#include <cstddef>
#include <queue>

namespace stoker::data {
namespace {

constexpr std::ptrdiff_t kNone = -1;

struct Symbol {
  std::int32_t id;  // kNone after it was merged into its left neighbour
  std::ptrdiff_t previous;
  std::ptrdiff_t next;
};

struct Candidate {
  std::int32_t rank;
  std::ptrdiff_t at;
  std::int32_t left;
  std::int32_t right;
  std::int32_t result;
  // For a queue that returns the smallest first.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

}  // namespace

BytePairs::BytePairs(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges)
    : byte_ids_(byte_ids) {
  merges_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    merges_.insert_or_assign(key_of(merge.left, merge.right), Ranked{static_cast<std::int32_t>(rank), merge.result});
  }
}

const BytePairs::Ranked* BytePairs::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::ptrdiff_t count = std::ssize(word);
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::ptrdiff_t at = 0; at < count; ++at) {
    const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(at)]);
    symbols.push_back({byte_ids_[byte], at - 1, at + 1 < count ? at + 1 : kNone});
  }
  const auto symbol = [&](std::ptrdiff_t at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::ptrdiff_t at) {
    if (at == kNone || symbol(at).next == kNone) {
      return;
    }
    const std::int32_t left = symbol(at).id;
    const std::int32_t right = symbol(symbol(at).next).id;
    if (const Ranked* merge = merge_of(left, right)) {
      queue.push({.rank = merge->rank, .at = at, .left = left, .right = right, .result = merge->result});
    }
  };
  for (std::ptrdiff_t at = 0; at < count; ++at) {
    consider(at);
  }
  for (; !queue.empty();) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbol(best.at);
    if (left.id != best.left || left.next == kNone || symbol(left.next).id != best.right) {
      continue;  // one of the two was merged in the meantime
    }
    Symbol& right = symbol(left.next);
    left.id = best.result;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) {
      symbol(left.next).previous = best.at;
    }
    consider(left.previous);
    consider(best.at);
  }
  for (std::ptrdiff_t at = count > 0 ? 0 : kNone; at != kNone; at = symbol(at).next) {
    ids.push_back(symbol(at).id);
  }
}

}  // namespace stoker::data
