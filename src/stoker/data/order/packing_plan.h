// SPDX-License-Identifier: Apache-2.0
// Documents packed whole into sequences of one length, best fit, so that hardly a token is padding. A plan over stored
// lengths that knows no text; its state is (hash(), position). Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::data {

struct PackingOptions {
  std::int64_t length = 0;  // tokens of a sequence
  std::uint64_t seed = 0;
  bool shuffle = true;  // documents of one length change places every epoch, and a sequence's documents their order
};

// Best fit decreasing: from the longest on, a document goes where it leaves the least room. Only a document longer than
// a sequence is cut: into sequences of its own and a rest, which is packed as a document. One of no tokens is in no
// sequence. Which lengths lie together is the same in every epoch, so epochs have equally many sequences; which
// documents of these lengths do is drawn from (seed, epoch). O(n log length) to make; 28 bytes a piece of a document
// and 8 a sequence and a token of a sequence.
class PackingPlan {
 public:
  // lengths: tokens of each document. ConfigError for a length below 1, DataError for a document's below 0.
  PackingPlan(std::span<const std::int64_t> lengths, const PackingOptions& options);

  // Tokens start ... start + length - 1 of a document.
  struct Piece {
    std::int64_t document = 0;
    std::int64_t start = 0;
    std::int64_t length = 0;
    bool operator==(const Piece&) const = default;
  };
  [[nodiscard]] std::int64_t sequences() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  // What sequence 0 ... sequences() - 1 of an epoch holds; behind its last piece comes padding. Sequences are numbered
  // by falling length of their longest piece: a Sampler of sequences() samples gives their order.
  void sequence(std::int64_t epoch, std::int64_t number, std::vector<Piece>& out) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }  // of all documents
  // Share of all sequences' tokens that is no padding; 1 without any sequence.
  [[nodiscard]] double fill() const;
  [[nodiscard]] std::int64_t cut_documents() const { return cut_; }  // that are longer than a sequence
  [[nodiscard]] std::uint64_t hash() const { return hash_; }         // see plan_hash.h

 private:
  void list_pieces(std::span<const std::int64_t> lengths);
  void pack();

  PackingOptions options_;
  std::int64_t tokens_ = 0, cut_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<Piece> pieces_;  // by falling length, then by document
  std::vector<std::int64_t>
      longer_;  // [t]: pieces of more than t tokens, which lie before those of t; t in 0 ... length
  std::vector<std::uint32_t> packed_;  // places in pieces_, sequence after sequence
  std::vector<std::int64_t> begins_;   // of each sequence in packed_, and the end
};

// Where each piece begins in its sequence, and where the last one ends: the offsets of a ragged field, from which
// attention learns which tokens see each other.
[[nodiscard]] std::vector<std::int64_t> piece_offsets(std::span<const PackingPlan::Piece> pieces);

}  // namespace stoker::data
