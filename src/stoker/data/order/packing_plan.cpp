// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/packing_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/permutation.h"
#include "stoker/data/order/plan_hash.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.packing_plan";
constexpr std::int64_t kMostLength = std::int64_t{1} << 26;  // some tables have one entry per token of a sequence

}  // namespace

PackingPlan::PackingPlan(std::span<const std::int64_t> lengths, const PackingOptions& options) : options_(options) {
  if (options.length < 1 || options.length > kMostLength) {
    fail<ConfigError>(kWhere, "sequences must have 1 to {} tokens, got {}", kMostLength, options.length);
  }
  hash_ = plan_hash(std::array{std::uint64_t{1}, static_cast<std::uint64_t>(options.length), options.seed,
                               std::uint64_t{options.shuffle}},
                    lengths);
  list_pieces(lengths);
  pack();
}

// Counting sort.
void PackingPlan::list_pieces(std::span<const std::int64_t> lengths) {
  const std::int64_t most = options_.length;
  std::vector<std::int64_t> count(static_cast<std::size_t>(most) + 1);
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    const std::int64_t length = lengths[document];
    if (length < 0) {
      fail<DataError>(kWhere, "document {} has {} tokens; the number must not be negative", document, length);
    }
    tokens_ += length;
    cut_ += length > most ? 1 : 0;
    count[static_cast<std::size_t>(most)] += length / most;
    count[static_cast<std::size_t>(length % most)] += length % most > 0 ? 1 : 0;
  }
  longer_.assign(count.size(), 0);
  for (std::size_t length = count.size() - 1; length > 0; --length) {
    longer_[length - 1] = longer_[length] + count[length];
  }
  if (longer_[0] >= (std::int64_t{1} << 32)) {
    fail<ConfigError>(kWhere, "{} pieces of documents are too many for a plan; set a larger length", longer_[0]);
  }
  pieces_.resize(static_cast<std::size_t>(longer_[0]));
  std::vector<std::int64_t> next = longer_;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    for (std::int64_t start = 0; start < lengths[document]; start += most) {
      const std::int64_t length = std::min(most, lengths[document] - start);
      const std::int64_t place = next[static_cast<std::size_t>(length)]++;
      pieces_[static_cast<std::size_t>(place)] = {static_cast<std::int64_t>(document), start, length};
    }
  }
}

void PackingPlan::pack() {
  std::map<std::int64_t, std::vector<std::uint32_t>> open;  // sequences by remaining room
  std::vector<std::uint32_t> chosen(pieces_.size());        // the sequence of each piece
  std::vector<std::int64_t> pieces_in;                      // per sequence
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::int64_t length = pieces_[i].length;
    std::int64_t room = options_.length;
    const auto best = open.lower_bound(length);
    if (best == open.end()) {
      chosen[i] = static_cast<std::uint32_t>(pieces_in.size());
      pieces_in.push_back(0);
    } else {
      room = best->first;
      chosen[i] = best->second.back();
      best->second.pop_back();
      if (best->second.empty()) {
        open.erase(best);
      }
    }
    ++pieces_in[chosen[i]];
    if (room > length) {
      open[room - length].push_back(chosen[i]);
    }
  }
  begins_.assign(pieces_in.size() + 1, 0);
  for (std::size_t i = 0; i < pieces_in.size(); ++i) {
    begins_[i + 1] = begins_[i] + pieces_in[i];
  }
  packed_.resize(pieces_.size());
  std::vector<std::int64_t> next = begins_;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    packed_[static_cast<std::size_t>(next[chosen[i]]++)] = static_cast<std::uint32_t>(i);
  }
}

void PackingPlan::sequence(std::int64_t epoch, std::int64_t number, std::vector<Piece>& out) const {
  if (number < 0 || number >= sequences()) {
    fail<ConfigError>(kWhere, "sequence {} is out of range; the plan has {} sequences", number, sequences());
  }
  const auto first = static_cast<std::size_t>(begins_[static_cast<std::size_t>(number)]);
  const auto last = static_cast<std::size_t>(begins_[static_cast<std::size_t>(number) + 1]);
  const auto round = static_cast<std::uint32_t>(epoch);
  const auto after_lengths = static_cast<std::uint64_t>(options_.length) + 1;
  const Permutation order(derived_seed(options_.seed, after_lengths + static_cast<std::uint64_t>(number)), round,
                          last - first);
  out.resize(last - first);
  for (std::size_t i = first; i < last; ++i) {
    std::size_t place = packed_[i];
    std::size_t to = i - first;
    if (options_.shuffle) {
      const auto length = static_cast<std::size_t>(pieces_[place].length);
      const auto begin = static_cast<std::size_t>(longer_[length]), end = static_cast<std::size_t>(longer_[length - 1]);
      const Permutation same_length(derived_seed(options_.seed, length), round, end - begin);
      place = begin + same_length(place - begin);
      to = order(to);
    }
    out[to] = pieces_[place];
  }
}

double PackingPlan::fill() const {
  return sequences() == 0 ? 1 : static_cast<double>(tokens_) / static_cast<double>(sequences() * options_.length);
}

std::vector<std::int64_t> piece_offsets(std::span<const PackingPlan::Piece> pieces) {
  std::vector<std::int64_t> offsets{0};
  for (const PackingPlan::Piece& piece : pieces) {
    offsets.push_back(offsets.back() + piece.length);
  }
  return offsets;
}

}  // namespace stoker::data
