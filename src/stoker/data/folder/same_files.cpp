// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/same_files.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <optional>
#include <unordered_map>

#include "stoker/base/fmt.h"

namespace stoker::data {
namespace {

constexpr std::int64_t kMaxSamples = 20'000;
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

struct HashOfBytes {
  std::size_t operator()(const XXH128_hash_t& hash) const { return hash.low64; }
};
struct SameHash {
  bool operator()(const XXH128_hash_t& a, const XXH128_hash_t& b) const { return XXH128_isEqual(a, b) != 0; }
};

// Hashes the samples of a split until the budget of bytes is used up.
class Reader {
 public:
  std::optional<XXH128_hash_t> hash(const ImageSplit& split, std::int64_t sample) {
    split.source->read(sample, bytes_);
    read_ += bytes_.size();
    return read_ <= kMaxBytes ? std::optional(XXH3_128bits(bytes_.data(), bytes_.size())) : std::nullopt;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

}  // namespace

void find_same_files(const ImageFolder& folder, std::vector<std::string>& findings) {
  const std::int64_t evaluated = folder.val.size() + folder.test.size();
  if (evaluated == 0) {
    return;
  }
  const auto not_looked = [&] {
    findings.push_back("did not check whether images of train are also in val or test: the data is too large");
  };
  if (folder.train.size() + evaluated > kMaxSamples) {
    return not_looked();
  }
  Reader reader;
  std::unordered_map<XXH128_hash_t, std::int64_t, HashOfBytes, SameHash> train;
  for (const std::int64_t sample : folder.train.samples) {
    const auto hash = reader.hash(folder.train, sample);
    if (!hash) {
      return not_looked();
    }
    train.emplace(*hash, sample);
  }
  for (const ImageSplit* split : {&folder.val, &folder.test}) {
    std::int64_t count = 0;
    std::string example;
    for (const std::int64_t sample : split->samples) {
      const auto hash = reader.hash(*split, sample);
      if (!hash) {
        return not_looked();
      }
      const auto found = train.find(*hash);
      if (found != train.end() && count++ == 0) {
        example = fmt::format("{} = {}", split->source->name(sample), folder.train.source->name(found->second));
      }
    }
    if (count > 0) {
      findings.push_back(
          fmt::format("{} of the {} images of {} are also in train, byte for byte ({}); metrics on {} are too good",
                      count, split->size(), split->name, example, split->name));
    }
  }
}

}  // namespace stoker::data
