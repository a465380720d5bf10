// SPDX-License-Identifier: Apache-2.0
#include "jpeg_turns.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/image_folder.h"

namespace stoker::bench {
namespace {

// The sampling of the colours, from the file's frame header.
std::string kind_of(Bytes file) {
  const auto at = [&](std::size_t place) { return std::to_integer<unsigned>(file[place]); };
  for (std::size_t place = 2; place + 12 < file.size(); place += 2 + at(place + 2) * 256 + at(place + 3)) {
    const unsigned marker = at(place + 1), parts = at(place + 9), first = at(place + 11);
    if (marker == 0xC2) {
      return "progressive";
    }
    if (marker == 0xC0 || marker == 0xC1) {  // first: 4 bits each, across and down
      return parts == 1      ? "grey"
             : parts != 3    ? "other"
             : first == 0x11 ? "4:4:4"
             : first == 0x22 ? "4:2:0"
             : first == 0x21 ? "4:2:2"
                             : "other";
    }
  }
  return "other";
}

// The images of one turn.
struct TurnSums {
  std::int64_t images = 0;
  std::vector<double> seconds;  // by way
};

struct Group {
  std::vector<TurnSums> turns;
  std::map<std::size_t, std::vector<double>> photos;  // seconds by way
};

class Clockwork {
 public:
  Clockwork(std::vector<Photo>& photos, const Job& job, const Turns& turns)
      : photos_(photos), job_(job), size_(turns) {}

  void check();
  Json run();

 private:
  Bytes read(const Photo& photo) {
    file_.assign(photo.bytes.begin(), photo.bytes.end());
    return file_;
  }
  void run_image(std::size_t index, const std::string& name, std::int64_t turn);
  [[nodiscard]] Json figures(const Group& group) const;

  std::vector<Photo>& photos_;
  const Job& job_;
  Turns size_;
  std::vector<std::byte> file_;
  std::map<std::string, Group> groups_;
  std::size_t done_ = 0;  // images; the way that begins changes from image to image
};

// The first image of each photo in each way.
void Clockwork::check() {
  std::vector<std::uint8_t> first, other;
  for (std::size_t index = 0; index < photos_.size(); ++index) {
    if (job_.prepare(photos_[index], index, 0).empty()) {
      continue;
    }
    for (std::size_t way = 0; way < job_.ways.size(); ++way) {
      const Decoded found = job_.call(read(photos_[index]), photos_[index], way);
      std::vector<std::uint8_t>& pixels = way == 0 ? first : other;
      pixels.clear();
      const augment::Region& region = found.region;
      for (int y = region.top; y < region.top + region.height; ++y) {
        const std::uint8_t* row = found.image.row(y) + std::ptrdiff_t{region.left} * found.image.channels;
        pixels.insert(pixels.end(), row, row + std::ptrdiff_t{region.width} * found.image.channels);
      }
      if (job_.same && way > 0 && first != other) {
        fail<DataError>("bench.loader_bench", "image {}: {} and {} give different pixels", index, job_.ways[0],
                        job_.ways[way]);
      }
    }
  }
}

// Before each call the file is copied to a buffer, as a loader reads it. That is not timed.
void Clockwork::run_image(std::size_t index, const std::string& name, std::int64_t turn) {
  const std::size_t ways = job_.ways.size();
  std::vector<double> spent(ways);
  for (std::size_t k = 0; k < ways; ++k) {
    const std::size_t way = (done_ + k) % ways;
    const Bytes file = read(photos_[index]);
    const double begin = thread_cpu_s();
    (void)job_.call(file, photos_[index], way);
    spent[way] = thread_cpu_s() - begin;
  }
  ++done_;
  for (const std::string& each : {std::string("all"), name}) {
    Group& group = groups_[each];
    group.turns.resize(static_cast<std::size_t>(size_.turns));
    TurnSums& sums = group.turns[static_cast<std::size_t>(turn)];
    std::vector<double>& of_photo = group.photos[index];
    ++sums.images;
    sums.seconds.resize(ways);
    of_photo.resize(ways);
    for (std::size_t way = 0; way < ways; ++way) {
      sums.seconds[way] += spent[way];
      of_photo[way] += spent[way];
    }
  }
}

Json Clockwork::figures(const Group& group) const {
  Json found = {{"images", group.turns.front().images}, {"ms", Json::object()}, {"by_photo", Json::object()}};
  for (std::size_t way = 0; way < job_.ways.size(); ++way) {
    Json& ms = found["ms"][job_.ways[way]] = Json::array();
    for (const TurnSums& turn : group.turns) {
      if (turn.images > 0) {
        ms.push_back(1e3 * turn.seconds[way] / static_cast<double>(turn.images));
      }
    }
    std::vector<double> ratios;
    for (const auto& [index, seconds] : group.photos) {
      ratios.push_back(seconds[0] / seconds[way]);
    }
    std::ranges::sort(ratios);
    for (const std::size_t percent : {10U, 50U, 90U}) {
      found["by_photo"][job_.ways[way]].push_back(ratios[(ratios.size() - 1) * percent / 100]);
    }
  }
  return found;
}

Json Clockwork::run() {
  for (std::int64_t number = 0; number < size_.turns * size_.images; ++number) {
    for (std::size_t index = 0; index < photos_.size(); ++index) {
      if (const std::string name = job_.prepare(photos_[index], index, number); !name.empty()) {
        run_image(index, name, number / size_.images);
      }
    }
  }
  Json found = Json::object();
  for (const auto& [name, group] : groups_) {
    found[name] = figures(group);
  }
  return found;
}

}  // namespace

std::vector<Photo> photos_of(const std::string& folder) {
  const data::ImageSplit split = data::open_image_folder(folder, {.val = 0}).train;
  std::vector<Photo> photos(static_cast<std::size_t>(split.size()));
  data::ImageDecoder decoder;
  for (std::size_t i = 0; i < photos.size(); ++i) {
    Photo& photo = photos[i];
    split.source->read(split.samples[static_cast<std::int64_t>(i)], photo.bytes);
    photo.kind = kind_of(photo.bytes);
    const auto [width, height] = decoder.open(photo.bytes, 3, {}, "a photo");
    photo.width = width, photo.height = height;
    (void)decoder.decode({0, 0, width, height}, "a photo", 1, &photo.rows);
  }
  return photos;
}

Json timed(std::vector<Photo>& photos, const Job& job, const Turns& turns) {
  if (turns.turns < 1 || turns.images < 1) {
    fail<ConfigError>("bench.loader_bench", "turns and images must be positive, got {} and {}", turns.turns,
                      turns.images);
  }
  Clockwork clockwork(photos, job, turns);
  clockwork.check();
  return clockwork.run();
}

}  // namespace stoker::bench
