// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of one word (Sennrich et al. 2016, over bytes as in GPT-2): repeatedly merges the adjacent pair
// with the lowest rank, leftmost first, until no merge is left. Used by the byte-level BPE. Thread-safe once made.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stoker::data {

class BytePairs {
 public:
  struct Merge {
    std::int32_t left;
    std::int32_t right;
    std::int32_t result;
  };
  // byte_ids: the token of each byte. merges: in order of rank; if a pair occurs twice, the last one counts.
  BytePairs(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the tokens of word. O(n log n) in its bytes.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Ranked {
    std::int32_t rank;
    std::int32_t result;
  };
  [[nodiscard]] const Ranked* merge_of(std::int32_t left, std::int32_t right) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::unordered_map<std::uint64_t, Ranked> merges_;  // by left and right token
};

}  // namespace stoker::data
