// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/row_index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"
#include "stoker/data/folder/cache_folder.h"

namespace stoker::data {
namespace {

constexpr std::size_t kShare = 100;                        // of an image's bytes for its entry: 1 / kShare
constexpr std::size_t kLeastRow = 4;                       // bytes of a packed row
constexpr std::int64_t kOverhead = 100;                    // bytes of an entry in memory besides its packed rows
constexpr std::size_t kMostRead = std::size_t{256} << 20;  // bytes of a list that cannot be mapped

// Makes processes write one after the other, so that each merges what the others wrote. Gives up after some time, since
// a list is always written as a whole: then entries of another process may be lost, and are learned again.
class Turn {
 public:
  explicit Turn(const std::filesystem::path& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr int kTries = 200;
    constexpr std::chrono::milliseconds kPause(10);
    for (int i = 0; i < kTries && folder_ >= 0 && ::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
         ++i) {
      std::this_thread::sleep_for(kPause);
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (folder_ >= 0) {
      ::close(folder_);
    }
  }

 private:
  int folder_;
};

// Removes what killed processes were writing: a list may have hundreds of megabytes.
void remove_left_over(const std::filesystem::path& file) {
  constexpr std::chrono::hours kOld(1);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), error)) {
    const auto written = entry.last_write_time(error);
    if (!error && entry.path().native().starts_with(file.native() + ".tmp-") &&
        written < std::filesystem::file_time_type::clock::now() - kOld) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

}  // namespace

RowIndex::RowIndex(const ByteSource& source, RowIndexOptions options)
    : options_(std::move(options)), samples_(static_cast<std::size_t>(source.size())) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(source.place(), error);
  if (options_.cache.empty() || error || source.size() < options_.from_samples) {
    return;
  }
  file_ = options_.cache / "rows" / hex_hash(place.native());
  stamp_ = stamp_of(file_);
  const std::shared_ptr<const RowList> list = RowList::open(file_, kMostRead);
  for (Shard& shard : shards_) {
    shard.list = list;
  }
}

RowIndex::~RowIndex() {
  writer_ = {};  // ends and waits
  if (changed_) {
    (void)write();
  }
}

std::shared_ptr<const RowList> RowIndex::list() const {
  const std::lock_guard lock(shards_.front().mutex);
  return shards_.front().list;
}

std::int64_t RowIndex::listed() const {
  const std::shared_ptr<const RowList> known = list();
  return known ? static_cast<std::int64_t>(known->size()) : 0;
}

void RowIndex::find(const ContentKey& key, JpegRows& rows) const {
  const Shard& shard = shard_of(key);
  std::shared_ptr<const RowList> list;
  {
    const std::lock_guard lock(shard.mutex);
    if (const auto found = shard.learned.find(key); found != shard.learned.end()) {
      (void)unpack_rows(found->second, rows);
      return;
    }
    list = shard.list;
  }
  (void)unpack_rows(list ? list->find(key) : Bytes(), rows);
}

void RowIndex::learn(const ContentKey& key, const JpegRows& rows) {
  const std::size_t most = key.bytes / kShare;
  if (rows.size() < 2 || rows.size() * kLeastRow + kRowListSlot > most) {
    return;
  }
  try {
    std::vector<std::byte> packed;
    packed.reserve(2 * kLeastRow * rows.size());
    pack_rows(rows, packed);
    if (packed.size() + kRowListSlot > most || packed.size() > kMostPackedRows) {
      return;
    }
    packed.shrink_to_fit();
    if (put(key, std::move(packed)) && !file_.empty()) {
      changed_.store(true, std::memory_order_relaxed);
      std::call_once(begun_, [this] { begin_writing(); });
    }
  } catch (const std::exception&) {  // no memory
    return;
  }
}

// False if more is known already, or if there is no room.
bool RowIndex::put(const ContentKey& key, std::vector<std::byte> packed) {
  const auto size = static_cast<std::int64_t>(packed.size());
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.learned.find(key);
  const std::int64_t before =
      found == shard.learned.end() ? -kOverhead : static_cast<std::int64_t>(found->second.size());
  const bool is_known = size <= before || (shard.list && std::ssize(shard.list->find(key)) >= size);
  if (is_known || held_.load(std::memory_order_relaxed) + size - before > options_.most_bytes) {
    return false;
  }
  if (found == shard.learned.end()) {
    shard.learned.emplace(key, std::move(packed));
  } else {
    found->second = std::move(packed);
  }
  held_.fetch_add(size - before, std::memory_order_relaxed);
  return true;
}

void RowIndex::begin_writing() {
  try {
    writer_ = start_thread("data.rows", "keeps the list of JPEG rows",
                           [this](const std::stop_token& stop) { keep_writing(stop); });
  } catch (const std::exception&) {  // no thread: the list is written at the end
    return;
  }
}

// A killed run keeps about four fifths of what it learned, and all writes together take about six times the final list.
bool RowIndex::is_worth_writing() const {
  const std::shared_ptr<const RowList> known = list();
  const std::int64_t held = held_bytes(), listed = known ? static_cast<std::int64_t>(known->bytes()) : 0;
  return changed_ && (held >= listed / 4 || held >= options_.most_bytes / 2);
}

void RowIndex::keep_writing(const std::stop_token& stop) {
  std::unique_lock lock(sleep_);
  while (!wake_.wait_for(lock, stop, options_.write_every, [] { return false; }) && !stop.stop_requested()) {
    if (is_worth_writing() && !write()) {
      return;  // read-only, full, or another process was in the way: once more at the end
    }
  }
}

// Copies, so that loader threads need not wait for a disk.
RowIndex::Draft RowIndex::learned() const {
  Draft draft;
  draft.copies.reserve(static_cast<std::size_t>(held_bytes()));
  std::vector<std::size_t> ends;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [key, packed] : shard.learned) {
      draft.copies.insert(draft.copies.end(), packed.begin(), packed.end());
      draft.entries.push_back({key, {}, true});
      ends.push_back(draft.copies.size());
    }
  }
  std::size_t start = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    draft.entries[i].packed = Bytes(draft.copies).subspan(start, ends[i] - start);
    start = ends[i];
  }
  return draft;
}

// Sorts, keeps the longest entry of each key, and drops entries that are not in use where there are more than samples:
// if images are replaced, the list keeps no more than it can use.
void RowIndex::fit(std::vector<PackedRows>& entries) const {
  std::ranges::sort(entries, [](const PackedRows& a, const PackedRows& b) {
    return a.key == b.key ? a.packed.size() > b.packed.size() : comes_before(a.key, b.key);
  });
  std::size_t kept = 0;
  for (const PackedRows& entry : entries) {
    if (kept > 0 && entries[kept - 1].key == entry.key) {
      entries[kept - 1].in_use |= entry.in_use;
    } else {
      entries[kept++] = entry;
    }
  }
  entries.resize(kept);
  std::size_t over = kept - std::min(kept, samples_);
  std::erase_if(entries, [&](const PackedRows& entry) {
    const bool is_one_too_many = over > 0 && !entry.in_use;
    over -= is_one_too_many ? 1 : 0;
    return is_one_too_many;
  });
}

// Replaces learned rows by those of the list that was written with these entries. False if it lacks one that is in use:
// another process has replaced it meanwhile, or it cannot be mapped.
bool RowIndex::adopt(std::span<const PackedRows> entries) {
  const std::optional<FileStamp> stamp = stamp_of(file_);
  const std::shared_ptr<const RowList> written = RowList::open(file_, kMostRead);
  for (const PackedRows& entry : entries) {
    if (!written || (entry.in_use && written->find(entry.key).size() < entry.packed.size())) {
      return false;
    }
  }
  stamp_ = stamp;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.list = written;
    std::erase_if(shard.learned, [&](const auto& each) {
      const std::int64_t size = std::ssize(each.second);
      const bool is_listed = written && std::ssize(written->find(each.first)) >= size;
      held_.fetch_sub(is_listed ? size + kOverhead : 0, std::memory_order_relaxed);
      return is_listed;
    });
  }
  return true;
}

// False if the list could not be written, or if it is not what was written.
bool RowIndex::write() {
  try {
    std::error_code error;
    std::filesystem::create_directories(file_.parent_path(), error);
    const Turn turn(file_.parent_path());
    remove_left_over(file_);
    changed_ = false;  // what is learned from here on is for the next time
    Draft draft = learned();
    std::shared_ptr<const RowList> known = list(), found;
    if (!known || stamp_of(file_) != stamp_) {
      found = RowList::open(file_, std::size_t{1} << 32);  // written by another process
    }
    for (const RowList* list : {known.get(), found.get()}) {
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        if (const PackedRows entry = list->entry(i); !entry.packed.empty()) {
          draft.entries.push_back(entry);
        }
      }
    }
    fit(draft.entries);
    write_file_atomically(
        file_, [&](FileWriter& writer) { write_row_list(draft.entries, [&](Bytes piece) { writer.write(piece); }); });
    if (adopt(draft.entries)) {
      return true;
    }
  } catch (const std::exception&) {  // read-only, full or no memory
  }
  changed_ = true;
  return false;
}

augment::ImageView decode_with_rows(RowIndex& index, ImageDecoder& decoder, Bytes file, const augment::Region& region,
                                    std::string_view name, JpegRows& memory) {
  if (image_format(file) != "JPEG") {
    return decoder.decode(region, name);
  }
  const ContentKey key = content_key(file);
  index.find(key, memory);
  const std::size_t known = memory.size();
  const augment::ImageView image = decoder.decode(region, name, 1, &memory);
  if (memory.size() > known) {
    index.learn(key, memory);
  }
  return image;
}

}  // namespace stoker::data
