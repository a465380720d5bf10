// SPDX-License-Identifier: Apache-2.0
// Packs whole documents into sequences of equal length by best fit, with almost no padding. A plan made from stored
// lengths, without text; its state is (hash(), position). Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::data {

struct PackingOptions {
  std::int64_t length = 0;  // tokens per sequence
  std::uint64_t seed = 0;
  bool shuffle = true;  // in every epoch: exchanges documents of equal length, and reorders documents within sequences
};

// Best fit decreasing: starting with the longest, each document goes where it leaves the least room. Only a document
// longer than a sequence is cut: into full sequences and a rest, which is packed like a document. A document without
// tokens is in no sequence. The combination of lengths is the same in every epoch, so all epochs have the same number
// of sequences; the documents of these lengths are drawn from (seed, epoch). Construction takes O(n log length) time;
// memory is 28 bytes per piece of a document, plus 8 per sequence and per token of a sequence.
class PackingPlan {
 public:
  // lengths: tokens of each document. ConfigError for a sequence length below 1, DataError for a negative document
  // length.
  PackingPlan(std::span<const std::int64_t> lengths, const PackingOptions& options);

  // Tokens start ... start + length - 1 of a document.
  struct Piece {
    std::int64_t document = 0;
    std::int64_t start = 0;
    std::int64_t length = 0;
    bool operator==(const Piece&) const = default;
  };
  [[nodiscard]] std::int64_t sequences() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  // The pieces of sequence 0 ... sequences() - 1 of an epoch; padding follows the last piece. Sequences are numbered by
  // decreasing length of their longest piece: use a Sampler of sequences() samples for their order.
  void sequence(std::int64_t epoch, std::int64_t number, std::vector<Piece>& out) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }  // of all documents
  // Share of tokens in all sequences that are not padding; 1 without sequences.
  [[nodiscard]] double fill() const;
  [[nodiscard]] std::int64_t cut_documents() const { return cut_; }  // documents longer than a sequence
  [[nodiscard]] std::uint64_t hash() const { return hash_; }         // see plan_hash.h

 private:
  void list_pieces(std::span<const std::int64_t> lengths);
  void pack();

  PackingOptions options_;
  std::int64_t tokens_ = 0, cut_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<Piece> pieces_;          // by decreasing length, then by document
  std::vector<std::int64_t> longer_;   // [t]: number of pieces with more than t tokens; t in 0 ... length
  std::vector<std::uint32_t> packed_;  // places in pieces_, by sequence
  std::vector<std::int64_t> begins_;   // start of each sequence in packed_, and the end
};

// The start of each piece in its sequence, and the end of the last one: the offsets of a ragged field, which tell
// attention which tokens may see each other.
[[nodiscard]] std::vector<std::int64_t> piece_offsets(std::span<const PackingPlan::Piece> pieces);

}  // namespace stoker::data
