// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/image_folder.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/folder/folder_index.h"
#include "stoker/data/folder/folder_layout.h"
#include "stoker/data/folder/same_files.h"
#include "stoker/data/folder/split_draft.h"

namespace stoker::data {
namespace {

// Reports classes that are missing in a split of the data: metrics on that split do not cover them.
void say_missing_classes(const ImageSplit& split, const ImageFolder& folder, std::vector<std::string>& findings) {
  std::vector<bool> seen(folder.classes.size(), false);
  split.labels.each_run([&](auto, auto, std::int64_t label) { seen[static_cast<std::size_t>(label)] = true; });
  const auto missing = std::ranges::count(seen, false);
  if (split.size() > 0 && missing > 0) {
    const auto first = static_cast<std::size_t>(std::ranges::find(seen, false) - seen.begin());
    findings.push_back(fmt::format("the {} split has no images of {} of the {} classes, for example \"{}\"", split.name,
                                   missing, folder.classes.size(), printable(folder.classes[first])));
  }
}

void check_classes(const std::filesystem::path& path, const ImageFolder& folder, std::size_t least) {
  if (folder.classes.size() >= least) {
    return;
  }
  std::string found;
  for (const std::string& finding : folder.findings) {
    found += fmt::format("; {}", finding);
  }
  if (folder.classes.empty()) {
    fail<DataError>("data.folder", "{}: no labelled training images{}; {}", printable(path.native()), found,
                    kExpectedLayouts);
  }
  fail<DataError>("data.folder", "{}: only one class, \"{}\"; classification needs at least two{}",
                  printable(path.native()), printable(folder.classes.front()), found);
}

// The classes of all splits, each once, sorted bytewise.
std::vector<std::string> classes_of_all(const std::array<SplitDraft, 3>& drafts) {
  std::set<std::string> all;
  for (const SplitDraft& draft : drafts) {
    const std::vector<std::string> classes = classes_of(draft);
    all.insert(classes.begin(), classes.end());
  }
  return {all.begin(), all.end()};
}

KnownFolder look_through(const std::filesystem::path& path, const SplitOptions& options,
                         const std::function<void(std::int64_t)>& progress, std::int64_t now) {
  KnownFolder known;
  known.looked = now;
  const bool for_training = options.for_training;
  FolderLayout layout = recognise_layout(path, options.classes_meant || !for_training, progress);
  ImageFolder& folder = known.folder;
  folder.layout = std::move(layout.name);
  folder.findings = std::move(layout.findings);
  folder.classes = for_training ? classes_of(layout.drafts[0]) : classes_of_all(layout.drafts);
  check_classes(path, folder, for_training ? 2 : 1);
  known.has_val = layout.drafts[1].given;
  known.seen = layout.seen;
  known.lasting = !layout.loops && !layout.foreign;  // else the next run must check again
  known.folders = std::move(layout.visited);
  if (layout.labels) {
    known.files.push_back({layout.drafts[0].root / "labels.csv", *layout.labels});
  }
  const std::array<ImageSplit*, 3> splits = {&folder.train, &folder.val, &folder.test};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    layout.drafts[i].name = kSplits[i];
    *splits[i] = make_split(std::move(layout.drafts[i]), folder.classes);
  }
  return known;
}

}  // namespace

ImageSplit part_of(const ImageSplit& split, std::shared_ptr<const BitSet> positions, bool inside) {
  LabelRuns runs;
  split.labels.each_run([&](std::int64_t first, std::int64_t count, std::int64_t label) {
    for (std::int64_t i = first; i < first + count; ++i) {
      runs.add(positions->contains(i) == inside ? 1 : 0, static_cast<std::uint32_t>(label));
    }
  });
  ImageSplit part{split.name, split.source, {}, LabelList(runs.runs())};
  if (split.samples.all()) {
    part.samples = SampleList::of(std::move(positions), inside);
    return part;
  }
  BitSet samples(split.source->size());
  for (std::int64_t i = 0; i < split.size(); ++i) {
    if (positions->contains(i) == inside) {
      samples.insert(split.samples[i]);
    }
  }
  samples.seal();
  part.samples = SampleList::of(std::make_shared<const BitSet>(std::move(samples)), true);
  return part;
}

IndexOptions default_index() { return {.cache = cache_folder()}; }

ImageFolder open_image_folder(const std::filesystem::path& path, const SplitOptions& options,
                              const std::function<void(std::int64_t)>& progress, const IndexOptions& index) {
  if (!(options.val >= 0 && options.val < 1)) {
    fail<ConfigError>("data.folder", "val must be a share from 0 to below 1, got {}; set val=0.1", options.val);
  }
  std::optional<KnownFolder> known;
  if (options.for_training) {  // an index is only made for training
    known = find_known(path, index);
  }
  if (known && progress) {
    progress(known->seen);
  }
  if (!known) {
    known = look_through(path, options, progress, index.clock());
    if (options.for_training && keep_known(path, *known, index)) {
      if (std::optional<KnownFolder> mapped = find_known(path, index)) {
        known = std::move(mapped);  // its names are in a mapped file, not in our memory
        ::malloc_trim(0);           // give the memory of the previous names back to the system
      }
    }
  }
  ImageFolder& folder = known->folder;
  if (options.for_training) {
    for (const ImageSplit* split : {&folder.train, &folder.val, &folder.test}) {
      say_missing_classes(*split, folder, folder.findings);
    }
  }
  if (!known->has_val && options.val > 0) {
    carve_validation(folder, options);
  }
  if (options.for_training) {
    find_same_files(folder, folder.findings);
  }
  return std::move(folder);
}

}  // namespace stoker::data
