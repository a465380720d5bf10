// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/folder_layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/foreign_layout.h"
#include "stoker/data/folder/labels_table.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;
using Progress = std::function<void(std::int64_t)>;
using Drafts = std::array<SplitDraft, 3>;  // train, val, test

std::size_t parts_of(std::string_view path) { return static_cast<std::size_t>(std::ranges::count(path, '/')) + 1; }
std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }

// The folders directly under the root with images somewhere below.
std::set<std::string, std::less<>> top_folders(const FolderScan& scan) {
  std::set<std::string, std::less<>> tops;
  for (const ScannedFile& file : scan.images) {
    const std::string_view top = first_part(file.path);
    if (top.size() != file.path.size() && !tops.contains(top)) {
      tops.emplace(top);
    }
  }
  return tops;
}

// If a single folder holds everything (as after `tar cf x.tar pets/`), makes it the root.
void enter_single_folder(FolderScan& scan, std::vector<std::string>& findings) {
  const auto tops = top_folders(scan);
  if (tops.size() != 1 || split_of_name(*tops.begin())) {
    return;
  }
  const std::string& top = *tops.begin();
  const auto table = std::ranges::find(scan.inner_labels, top, [](const ScannedFile& f) { return first_part(f.path); });
  const bool has_table = table != scan.inner_labels.end();
  const std::size_t depth = has_table ? 2 : 3;  // images of a table are beside it, others in class folders
  if (!std::ranges::all_of(scan.images, [&](const ScannedFile& f) { return parts_of(f.path) >= depth; })) {
    return;
  }
  findings.push_back(fmt::format("all images are in {}; it is used as the root", printable(top)));
  if (scan.shards.empty()) {
    scan.root /= top;
  }
  for (ScannedFile& file : scan.images) {
    file.path.erase(0, top.size() + 1);
  }
  std::vector<std::string> folders;
  for (const std::string& folder : scan.folders) {
    if (folder.size() > top.size() && folder.starts_with(top) && folder[top.size()] == '/') {
      folders.push_back(folder.substr(top.size() + 1));
    }
  }
  scan.folders = std::move(folders);
  if (has_table) {
    scan.labels = std::move(*table);
    scan.labels.path.erase(0, top.size() + 1);
    scan.inner_labels.erase(table);
  }
}

// The images under prefix ("" or "train/") by class folder. Images without a class folder are counted in loose.
void add_class_folders(const FolderScan& scan, const std::string& prefix, SplitDraft& draft, Tally& loose) {
  draft.root = scan.root / prefix;
  draft.shards = scan.shards;
  draft.given = true;
  for (const ScannedFile& file : scan.images) {
    if (!file.path.starts_with(prefix)) {
      continue;
    }
    std::string key = file.path.substr(prefix.size());
    const std::size_t slash = key.find('/');
    if (slash == std::string::npos) {
      loose.add(file.path);
      continue;
    }
    std::string label = key.substr(0, slash);
    draft.files.push_back({{std::move(key), file.shard, file.offset, file.size}, std::move(label)});
  }
}

// The top folder of each split, if there are any. Split folders contain class folders, so a class named "train" that
// directly contains images is not a split.
std::array<std::string, 3> find_split_folders(const FolderScan& scan, std::vector<std::string>& findings) {
  std::array<std::string, 3> found;
  std::set<std::string, std::less<>> deep;
  for (const ScannedFile& file : scan.images) {
    if (parts_of(file.path) >= 3) {
      deep.emplace(first_part(file.path));
    }
  }
  std::vector<std::string> others;
  for (const std::string& top : top_folders(scan)) {
    const auto split = deep.contains(top) ? split_of_name(top) : std::nullopt;
    if (!split) {
      others.push_back(top);
      continue;
    }
    std::string& folder = found[static_cast<std::size_t>(*split)];
    if (!folder.empty()) {
      fail<DataError>("data.folder", "{}: \"{}\" and \"{}\" are both names of the {} split; keep one",
                      printable(scan.root.native()), folder, top, kSplits[static_cast<std::size_t>(*split)]);
    }
    folder = top;
  }
  if (found[0].empty()) {
    if (!(found[1] + found[2]).empty() && others.empty()) {
      fail<DataError>("data.folder",
                      "{}: there is a folder \"{}\" but no training folder; name the training folder train",
                      printable(scan.root.native()), found[1].empty() ? found[2] : found[1]);
    }
    return {};
  }
  if (!others.empty()) {
    findings.push_back(fmt::format("folders beside \"{}\" ignored: {}", found[0],
                                   printable(fmt::format("{}", fmt::join(others, ", ")))));
  }
  return found;
}

void say_empty_folders(const FolderScan& scan, std::size_t level, std::vector<std::string>& findings) {
  Tally empty;
  for (const std::string& folder : scan.folders) {
    const std::string prefix = folder + "/";
    const auto next = std::ranges::lower_bound(scan.images, prefix, {}, &ScannedFile::path);
    if (parts_of(folder) == level && (next == scan.images.end() || !next->path.starts_with(prefix))) {
      empty.add(folder);
    }
  }
  if (empty.count == 1) {
    findings.push_back(
        fmt::format("the folder \"{}\" contains no images and is not used as a class", printable(empty.first)));
  } else if (empty.count > 1) {
    findings.push_back(fmt::format("{} folders contain no images and are not used as classes, for example \"{}\"",
                                   empty.count, printable(empty.first)));
  }
}

struct Look {
  const fs::path& path;  // as given by the user
  bool classes_meant;
  const Progress& progress;
};

// A labels table shows that classes are meant.
void refuse_foreign(const FolderScan& scan, const Look& look, FolderLayout& found) {
  if (!scan.labels.path.empty() || !scan.inner_labels.empty()) {
    return;
  }
  const std::optional<ForeignLayout> foreign = foreign_layout(scan);
  if (!foreign) {
    return;
  }
  if (!look.classes_meant) {
    fail<DataError>("data.folder",
                    "{}: looks like data for {}, which Stoker does not support yet: {}; if its folders are classes, "
                    "set task=image_classification",
                    printable(look.path.native()), foreign->task, foreign->evidence);
  }
  found.foreign = true;
  found.findings.push_back(fmt::format("looks like data for {}: {}; its folders are used as classes as requested",
                                       foreign->task, foreign->evidence));
}

// Class folders, split folders or a labels.csv, in a folder or a tar file.
Drafts recognise(FolderScan& scan, const Look& look, FolderLayout& found) {
  refuse_foreign(scan, look, found);
  std::string& layout = found.name;
  std::vector<std::string>& findings = found.findings;
  if (scan.labels.path.empty()) {
    enter_single_folder(scan, findings);
  }
  for (const ScannedFile& table : scan.inner_labels) {
    scan.other.add(table.path);
  }
  if (!scan.labels.path.empty()) {
    layout = "labels.csv";
    found.labels = scan.shards.empty() ? stamp_of(scan.root / scan.labels.path) : std::nullopt;
    return read_labels(scan, findings);
  }
  Drafts drafts;
  Tally loose;
  const std::array<std::string, 3> folders = find_split_folders(scan, findings);
  if (folders[0].empty()) {
    layout = "class folders";
    add_class_folders(scan, "", drafts[0], loose);
    say_empty_folders(scan, 1, findings);
  } else {
    layout = "split folders";
    for (std::size_t i = 0; i < 3; ++i) {
      if (!folders[i].empty()) {
        add_class_folders(scan, folders[i] + "/", drafts[i], loose);
      }
    }
    say_empty_folders(scan, 2, findings);
  }
  if (loose.count > 0) {
    findings.push_back(
        fmt::format("images outside class folders ignored: {}, for example {}", loose.count, printable(loose.first)));
  }
  return drafts;
}

// "train-00001.tar", "train.tar", "Validation_3.tar": the leading letters name the split.
std::optional<int> split_of_tar(std::string_view name) {
  const std::size_t end = name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return split_of_name(name.substr(0, end));
}

// The drafts of train-*.tar and similar files; empty if there are none for training.
std::optional<Drafts> recognise_shards(const FolderScan& scan, const Look& look, FolderLayout& found) {
  std::vector<std::string>& findings = found.findings;
  std::array<std::vector<fs::path>, 3> shards;
  for (const std::string& tar : scan.tars) {
    if (const std::optional<int> split = split_of_tar(tar)) {
      shards[static_cast<std::size_t>(*split)].push_back(scan.root / tar);
    } else {
      findings.push_back(fmt::format("{} ignored: its name does not begin with train, val or test", printable(tar)));
    }
  }
  if (shards[0].empty()) {
    return std::nullopt;
  }
  Drafts drafts;
  for (std::size_t i = 0; i < 3; ++i) {
    if (shards[i].empty()) {
      continue;
    }
    FolderScan members = scan_tars(shards[i], look.progress);
    refuse_foreign(members, look, found);
    describe_passed_over(members, findings);
    found.seen += members.seen;
    const auto tops = top_folders(members);
    const bool repeated =
        tops.size() == 1 && split_of_name(*tops.begin()) == static_cast<int>(i) &&
        std::ranges::all_of(members.images, [](const ScannedFile& f) { return parts_of(f.path) >= 3; });
    Tally loose;
    add_class_folders(members, repeated ? *tops.begin() + "/" : "", drafts[i], loose);
    if (loose.count > 0) {
      findings.push_back(
          fmt::format("images outside class folders ignored: {}, for example {}", loose.count, printable(loose.first)));
    }
  }
  return drafts;
}

// One tar file, given as the path or alone in a folder.
FolderLayout recognise_tar(const fs::path& tar, const Look& look) {
  FolderScan scan = scan_tars({tar}, look.progress);
  FolderLayout layout;
  layout.seen = scan.seen;
  layout.drafts = recognise(scan, look, layout);
  layout.name = "tar file";
  describe_passed_over(scan, layout.findings);
  return layout;
}

void add_made_of(FolderScan& scan, FolderLayout& layout) {
  layout.visited = std::move(scan.visited);
  layout.seen += scan.seen;
  layout.loops = scan.loops.count > 0;
}

}  // namespace

FolderLayout recognise_layout(const fs::path& path, bool classes_meant, const Progress& progress) {
  const Look look{path, classes_meant, progress};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::regular) {
    return recognise_tar(path, look);
  }
  if (status.type() != fs::file_type::directory) {
    fail<DataError>("data.folder", "{}: {}", printable(path.native()),
                    fs::exists(status) ? "is neither a folder nor a file" : "does not exist");
  }
  FolderScan scan = scan_folder(path, progress);
  if (scan.images.empty() && scan.tars.size() == 1 && split_of_tar(scan.tars.front()) != 0) {
    FolderLayout layout = recognise_tar(path / scan.tars.front(), look);
    add_made_of(scan, layout);
    return layout;
  }
  FolderLayout layout;
  if (std::optional<Drafts> drafts = recognise_shards(scan, look, layout)) {
    layout.name = "tar shards";
    layout.drafts = std::move(*drafts);
  } else {
    layout.drafts = recognise(scan, look, layout);
  }
  describe_passed_over(scan, layout.findings);
  add_made_of(scan, layout);
  return layout;
}

}  // namespace stoker::data
