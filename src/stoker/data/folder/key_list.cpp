// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/key_list.h"

#include <bit>
#include <cstring>

namespace stoker::data {

static_assert(std::endian::native == std::endian::little, "an index is mapped without conversion");

KeyList::KeyList(const std::vector<std::string>& keys) {
  struct Arena {
    std::vector<std::uint64_t> ends;
    std::string text;
  };
  const auto arena = std::make_shared<Arena>();
  std::size_t bytes = 0;
  for (const std::string& key : keys) {
    bytes += key.size();
  }
  arena->text.reserve(bytes);
  arena->ends.reserve(keys.size());
  for (const std::string& key : keys) {
    arena->text += key;
    arena->ends.push_back(arena->text.size());
  }
  owner_ = arena;
  ends_ = std::as_bytes(std::span(arena->ends));
  text_ = as_bytes(arena->text);
}

std::uint64_t KeyList::end_of(std::int64_t index) const {
  std::uint64_t end = 0;
  std::memcpy(&end, ends_.data() + static_cast<std::size_t>(index) * sizeof end, sizeof end);
  return end;
}

}  // namespace stoker::data
