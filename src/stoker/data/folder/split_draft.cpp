// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/split_draft.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

std::shared_ptr<const ByteSource> make_source(SplitDraft& draft) {
  std::vector<std::string> keys;
  keys.reserve(draft.files.size());
  for (LabelledFile& each : draft.files) {
    keys.push_back(std::move(each.file.key));
  }
  if (draft.shards.empty()) {
    return std::make_shared<FolderSource>(draft.root, KeyList(keys));
  }
  const auto places = std::make_shared<std::vector<TarPlace>>();
  places->reserve(draft.files.size());
  for (const LabelledFile& each : draft.files) {
    places->push_back({each.file.shard, each.file.offset, each.file.size});
  }
  return std::make_shared<TarSource>(draft.shards, KeyList(keys), places, std::as_bytes(std::span(*places)));
}

// Positions in train that move to validation.
BitSet choose(const ImageSplit& train, std::size_t classes, const SplitOptions& options,
              std::vector<std::int64_t>& lonely) {
  using Run = std::pair<std::int64_t, std::int64_t>;      // first position, number
  using Ticket = std::pair<std::uint64_t, std::int64_t>;  // lowest numbers win
  std::vector<std::vector<Run>> runs(classes);
  train.labels.each_run([&](std::int64_t first, std::int64_t count, std::int64_t label) {
    runs[static_cast<std::size_t>(label)].emplace_back(first, count);
  });
  BitSet chosen(train.size());
  std::vector<Ticket> tickets;  // of one class
  for (std::size_t c = 0; c < classes; ++c) {
    tickets.clear();
    for (const auto& [first, count] : runs[c]) {
      for (std::int64_t i = first; i < first + count; ++i) {
        CounterRng random(options.seed, 0, static_cast<std::uint64_t>(train.samples[i]), RandomOp::kSplit);
        const std::uint64_t high = random.next();
        tickets.emplace_back((high << 32) | random.next(), i);
      }
    }
    const auto size = static_cast<std::int64_t>(tickets.size());
    if (size < 2) {
      lonely.push_back(static_cast<std::int64_t>(c));
      continue;
    }
    const std::int64_t share =
        std::clamp<std::int64_t>(std::llround(options.val * static_cast<double>(size)), 1, size - 1);
    std::ranges::nth_element(tickets, tickets.begin() + share);
    for (std::int64_t k = 0; k < share; ++k) {
      chosen.insert(tickets[static_cast<std::size_t>(k)].second);
    }
  }
  chosen.seal();
  return chosen;
}

}  // namespace

std::vector<std::string> classes_of(const SplitDraft& draft) {
  std::vector<std::string> classes;
  for (const LabelledFile& each : draft.files) {
    if (classes.empty() || classes.back() != each.label) {  // files are mostly sorted by class
      classes.push_back(each.label);
    }
  }
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());  // clang 14 cannot read ranges::unique
  return classes;
}

ImageSplit make_split(SplitDraft draft, const std::vector<std::string>& classes) {
  const auto place = [](const LabelledFile& each) { return std::tie(each.file.key, each.file.shard); };
  if (!std::ranges::is_sorted(draft.files, {}, place)) {
    std::ranges::sort(draft.files, {}, place);
  }
  ImageSplit split;
  split.name = draft.name;
  LabelRuns labels;
  for (const LabelledFile& each : draft.files) {
    const auto found = std::ranges::lower_bound(classes, each.label);
    if (found == classes.end() || *found != each.label) {
      fail<DataError>("data.folder",
                      "class \"{}\" of the {} split does not occur in train (for example {}); add images of it"
                      " to train or remove the class",
                      printable(each.label), draft.name, printable(each.file.key));
    }
    labels.add(1, static_cast<std::uint32_t>(found - classes.begin()));
  }
  split.samples = SampleList::first(static_cast<std::int64_t>(draft.files.size()));
  split.labels = LabelList(labels.runs());
  split.source = make_source(draft);
  return split;
}

void carve_validation(ImageFolder& folder, const SplitOptions& options) {
  ImageSplit& train = folder.train;
  std::vector<std::int64_t> lonely;
  const auto chosen = std::make_shared<const BitSet>(choose(train, folder.classes.size(), options, lonely));
  ImageSplit rest = part_of(train, chosen, false);
  ImageSplit val = part_of(train, chosen, true);
  val.name = "val";
  folder.findings.push_back(fmt::format("validation: {} of the {} training samples, balanced by class, seed {}",
                                        val.size(), train.size(), options.seed));
  if (!lonely.empty()) {
    const std::string first = printable(folder.classes[static_cast<std::size_t>(lonely.front())]);
    folder.findings.push_back(
        lonely.size() == 1
            ? fmt::format("class \"{}\" has only one sample, which stays in train", first)
            : fmt::format("{} classes have only one sample, for example \"{}\"; these samples stay in train",
                          lonely.size(), first));
  }
  folder.train = std::move(rest);
  folder.val = std::move(val);
}

}  // namespace stoker::data
