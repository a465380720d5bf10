// SPDX-License-Identifier: Apache-2.0
// Documents of any length as batches of full sequences: the paragraphs of texts, packed by best fit.
//
//     packed_text FILE...
//
// A plan over the documents' lengths assigns documents to sequences; only (plan, epoch, step) are needed to continue. A
// packed sequence stores where its documents start, so that attention stays within them: each token sees what it would
// see if its document were alone. Prints how full the sequences are, compared with length buckets and with one sequence
// per document.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <stoker/stoker.h>

namespace {

using namespace stoker;
using data::PackingPlan;
constexpr std::int64_t kLength = 512;  // tokens per sequence; here a byte is a token
constexpr std::int64_t kBatch = 8;     // sequences
constexpr std::int64_t kPadding = 0;

// Adds the bytes of each paragraph, with its last line end; paragraphs are separated by empty lines.
void add_paragraphs(const std::string& text, std::vector<std::string>& all) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size() - 1) + 1;
    all.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of('\n', end);
  }
}

// The batch at a position: "ids" [B, kLength], and ragged "pieces": where each document of a sequence starts, and where
// the last one ends.
core::Batch packed_batch(const PackingPlan& plan, const data::BatchOrder& order, const std::vector<std::string>& texts,
                         core::Position at) {
  std::vector<std::int64_t> numbers, begins, offsets{0};
  order.positions(at.epoch, at.step, numbers);
  std::vector<PackingPlan::Piece> pieces;
  at::Tensor ids = at::full({static_cast<std::int64_t>(numbers.size()), kLength}, kPadding, at::kLong);
  std::int64_t* row = ids.data_ptr<std::int64_t>();
  for (const std::int64_t number : numbers) {
    plan.sequence(at.epoch, number, pieces);
    std::int64_t* token = row;
    for (const PackingPlan::Piece& piece : pieces) {
      const std::string& text = texts[static_cast<std::size_t>(piece.document)];
      for (std::int64_t i = piece.start; i < piece.start + piece.length; ++i) {
        *token++ = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
      }
    }
    const std::vector<std::int64_t> own = data::piece_offsets(pieces);
    begins.insert(begins.end(), own.begin(), own.end());
    offsets.push_back(static_cast<std::int64_t>(begins.size()));
    row += kLength;
  }
  core::Batch batch(at, std::move(numbers));
  batch.set("ids", std::move(ids));
  batch.set({"pieces", at::tensor(begins, at::kLong), core::Layout::kRagged, at::tensor(offsets, at::kLong)});
  return batch;
}

// bool [kLength, kLength]: whether a token sees another: an earlier one of its document, or itself.
at::Tensor document_mask(const at::Tensor& begins) {
  at::Tensor mask = at::zeros({kLength, kLength}, at::kBool);
  for (std::int64_t i = 0; i + 1 < begins.numel(); ++i) {
    const std::int64_t begin = begins[i].item<std::int64_t>(), size = begins[i + 1].item<std::int64_t>() - begin;
    mask.narrow(0, begin, size).narrow(1, begin, size).fill_(true);
  }
  return mask.tril();
}

// The largest difference between attention over packed documents and over each document alone.
double apart(const core::Batch& batch) {
  const at::Tensor one = batch.slice(0, 1)["ids"].to(at::kFloat).div(256).view({1, 1, kLength, 1});
  const at::Tensor hidden = one * at::linspace(-2, 2, 8);  // replaces the features of a network
  const at::Tensor begins = batch.slice(0, 1)["pieces"];
  const at::Tensor packed = ops::attention(hidden, hidden, hidden, document_mask(begins));
  double most = 0;
  for (std::int64_t i = 0; i + 1 < begins.numel(); ++i) {
    const std::int64_t begin = begins[i].item<std::int64_t>(), size = begins[i + 1].item<std::int64_t>() - begin;
    const at::Tensor own = hidden.narrow(2, begin, size);
    const at::Tensor alone = ops::attention(own, own, own, {}, {.causal = true});
    most = std::max(most, (alone - packed.narrow(2, begin, size)).abs().max().item<double>());
  }
  return most;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> texts;
  for (int i = 1; i < argc; ++i) {
    add_paragraphs(data::read_text_files(argv[i]).bytes, texts);
  }
  if (texts.empty()) {
    fail<ConfigError>("packed_text", "there is no text to pack; call packed_text FILE...");
  }
  std::vector<std::int64_t> lengths;
  std::int64_t alone = 0;  // sequences if every document had its own
  for (const std::string& text : texts) {
    lengths.push_back(static_cast<std::int64_t>(text.size()));
    alone += (lengths.back() + kLength - 1) / kLength;
  }

  const PackingPlan plan(lengths, {.length = kLength, .seed = 1});
  fmt::print("{} paragraphs, {} tokens, {} longer than a sequence of {}\n", lengths.size(), plan.tokens(),
             plan.cut_documents(), kLength);
  fmt::print("one sequence per paragraph: {} sequences, {:.2f} % full\n", alone,
             100.0 * static_cast<double>(plan.tokens()) / static_cast<double>(alone * kLength));
  fmt::print("packed: {} sequences, {:.2f} % full\n", plan.sequences(), 100 * plan.fill());
  const std::int64_t budget = std::max(kBatch * kLength, *std::ranges::max_element(lengths));
  const data::BucketPlan buckets(lengths, {.tokens = budget, .seed = 1});
  fmt::print("in length buckets: {} batches of at most {} tokens, {:.2f} % of them padding\n",
             buckets.steps_per_epoch(), budget, 100 * buckets.waste());

  const data::Sampler order({.samples = plan.sequences(), .batch = kBatch, .seed = 1});
  std::int64_t tokens = 0, documents = 0;
  for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    const core::Batch batch = packed_batch(plan, order, texts, {0, step});
    tokens += batch["ids"].ne(kPadding).sum().item<std::int64_t>();
    documents += batch["pieces"].numel() - batch.size();
  }
  fmt::print("one epoch: {} steps, {} tokens in {} pieces\n", order.steps_per_epoch(), tokens, documents);
  fmt::print("attention within documents differs from each alone by at most {:.1e}\n",
             apart(packed_batch(plan, order, texts, {0, 0})));
  fmt::print("state: plan {:016x}, epoch, step\n", plan.hash());
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
