// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/folder_index.h"

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/mapped_file.h"
#include "stoker/base/version.h"
#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/folder/folder_listing.h"
#include "stoker/data/folder/index_file.h"
#include "stoker/data/folder/split_draft.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

fs::path below(const fs::path& root, const std::string& relative) { return relative.empty() ? root : root / relative; }

// The part of a path after root.
std::string relative_to(const fs::path& root, const fs::path& path) {
  std::string_view rest = path.native();
  rest.remove_prefix(std::min(root.native().size(), rest.size()));
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  return std::string(rest);
}

// Whether a folder is unchanged. If it had to be listed because its stamp was unsure, the stamp is valid afterwards.
bool is_unchanged(IndexedFolder& folder, const fs::path& path, std::int64_t now, bool& renewed) {
  const std::optional<FileStamp> stamp = stamp_of(path);
  if (!stamp || stamp->inode != folder.stamp.inode) {
    return false;  // another folder, or a link to elsewhere: its content may be anything
  }
  if (folder.settled && *stamp == folder.stamp) {
    return true;
  }
  const FolderListing listing = list_folder(path);
  if (listing.error || listing.hash() != folder.listing) {
    return false;
  }
  folder.stamp = *stamp;
  folder.settled = listing.steady && is_settled(*stamp, now);
  renewed = renewed || folder.settled;
  return true;
}

bool is_unchanged(const IndexedFile& file, const fs::path& path) {
  return file.settled && stamp_of(path) == file.stamp;  // a younger file may have changed within one clock tick
}

bool write(const fs::path& path, const FolderIndex& index) {
  try {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    write_file_atomically(path, [&](FileWriter& file) { write_index(index, [&](Bytes bytes) { file.write(bytes); }); });
    return true;
  } catch (const IoError&) {
    return false;  // read-only or full: the data is scanned again next time
  }
}

// The split as a source with mapped keys. DataError if a tar file is gone.
ImageSplit open_split(const IndexedSplit& split, const fs::path& path,
                      const std::vector<std::shared_ptr<const TarFile>>& files,
                      const std::shared_ptr<const MappedFile>& file) {
  ImageSplit result;
  KeyList keys(file, split.ends, split.text);
  result.samples = SampleList::first(keys.size());
  result.labels = LabelList(split.labels);
  if (split.shards.empty()) {
    result.source = std::make_shared<FolderSource>(path / split.root, std::move(keys));
    return result;
  }
  std::vector<std::shared_ptr<const TarFile>> shards;
  for (const std::uint64_t shard : split.shards) {
    shards.push_back(files[shard]);
  }
  result.source = std::make_shared<TarSource>(std::move(shards), std::move(keys), file, split.places);
  return result;
}

KnownFolder open_known(const FolderIndex& index, const fs::path& path, const std::shared_ptr<const MappedFile>& file) {
  std::vector<std::shared_ptr<const TarFile>> files(index.files.size());
  for (const IndexedSplit& split : index.splits) {
    for (const std::uint64_t shard : split.shards) {
      if (!files[shard]) {
        files[shard] = std::make_shared<TarFile>(below(path, index.files[shard].path), TarFile::Known());
        if (files[shard]->stamp() != index.files[shard].stamp) {
          fail<DataError>("data.index", "{} changed while it was being read; run again",
                          printable(files[shard]->path().native()));
        }
      }
    }
  }
  KnownFolder known;
  known.folder.layout = index.layout;
  known.folder.classes = index.classes;
  known.folder.findings = index.findings;
  const std::array<ImageSplit*, 3> splits = {&known.folder.train, &known.folder.val, &known.folder.test};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    *splits[i] = open_split(index.splits[i], path, files, file);
    splits[i]->name = kSplits[i];
  }
  known.has_val = index.has_val;
  known.seen = index.seen;
  return known;
}

// Its number among the files; adds it if it is new.
std::uint64_t add_file(FolderIndex& index, std::string path, const FileStamp& stamp, std::int64_t looked) {
  const auto found = std::ranges::find(index.files, path, &IndexedFile::path);
  if (found == index.files.end()) {
    index.files.push_back({std::move(path), stamp, is_settled(stamp, looked)});
    return index.files.size() - 1;
  }
  return static_cast<std::uint64_t>(found - index.files.begin());
}

IndexedSplit describe(const ImageSplit& split, const fs::path& path, std::int64_t looked, FolderIndex& index) {
  IndexedSplit result;
  split.labels.each_run([&](std::int64_t, std::int64_t count, std::int64_t label) {
    result.labels.push_back({count, static_cast<std::uint32_t>(label)});
  });
  if (const auto* folder = dynamic_cast<const FolderSource*>(split.source.get())) {
    result.root = relative_to(path, folder->root());
    result.ends = folder->keys().ends();
    result.text = folder->keys().text();
  } else if (const auto* tars = dynamic_cast<const TarSource*>(split.source.get())) {
    result.ends = tars->keys().ends();
    result.text = tars->keys().text();
    result.places = tars->places();
    for (const std::shared_ptr<const TarFile>& shard : tars->shards()) {
      result.shards.push_back(add_file(index, relative_to(path, shard->path()), shard->stamp(), looked));
    }
  }
  return result;
}

std::string real_path(const fs::path& path) {
  std::error_code error;
  return fs::canonical(path, error).native();
}

}  // namespace

fs::path index_file(const fs::path& cache, const fs::path& path) { return cache / "index" / hex_hash(real_path(path)); }

std::optional<KnownFolder> find_known(const fs::path& path, const IndexOptions& options) {
  if (options.cache.empty()) {
    return std::nullopt;
  }
  const fs::path place = index_file(options.cache, path);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(place);
  if (!file || !index_is_whole(file->bytes())) {
    return std::nullopt;
  }
  std::optional<FolderIndex> index = parse_index(file->bytes());
  if (!index || index->program != kVersion || index->path != real_path(path)) {
    return std::nullopt;
  }
  const std::int64_t now = options.clock();
  bool renewed = false;
  for (IndexedFolder& folder : index->folders) {
    if (!is_unchanged(folder, below(path, folder.path), now, renewed)) {
      return std::nullopt;
    }
  }
  for (const IndexedFile& each : index->files) {
    if (!is_unchanged(each, below(path, each.path))) {
      return std::nullopt;
    }
  }
  if (renewed) {
    write(place, *index);
  }
  try {
    return open_known(*index, path, file);
  } catch (const DataError&) {
    return std::nullopt;  // the scan reports what is wrong
  }
}

bool keep_known(const fs::path& path, const KnownFolder& known, const IndexOptions& options) {
  if (options.cache.empty() || known.seen < options.from_files || !known.lasting) {
    return false;
  }
  FolderIndex index;
  index.program = kVersion;
  index.path = real_path(path);
  for (const VisitedFolder& folder : known.folders) {
    index.folders.push_back(
        {folder.path, folder.stamp, folder.steady && is_settled(folder.stamp, known.looked), folder.listing});
  }
  for (const KnownFolder::Read& file : known.files) {
    (void)add_file(index, relative_to(path, file.path), file.stamp, known.looked);
  }
  index.seen = known.seen;
  index.has_val = known.has_val;
  index.layout = known.folder.layout;
  index.findings = known.folder.findings;
  index.classes = known.folder.classes;
  const std::array<const ImageSplit*, 3> splits = {&known.folder.train, &known.folder.val, &known.folder.test};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    index.splits[i] = describe(*splits[i], path, known.looked, index);
  }
  return write(index_file(options.cache, path), index);
}

}  // namespace stoker::data
