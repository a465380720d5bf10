// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/sheet.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "stoker/base/base64.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/data/decode/png_encode.h"

namespace stoker::study {
namespace {

constexpr std::size_t kMostRows = 100, kMostInRow = 10, kMostInSheet = 360;
constexpr std::size_t kAfterStop = 40;  // images after a stop, so that the user need not wait
constexpr int kSide = 96;               // pixels
constexpr int kSmall = 32;              // pixels; JPEG does not make images this small any smaller
constexpr int kQuality = 80;

std::string data_uri(const Inspection& found, std::size_t place, ImageLooker& looker, std::vector<std::byte>& bytes) {
  const InspectedImage& image = found.images[place];
  try {
    found.split(image.split).source->read(image.index, bytes);
    const augment::ImageView view = looker.thumbnail(bytes, found.name(place), kSide);
    if (std::max(view.width, view.height) <= kSmall) {
      return "data:image/png;base64," + base64(data::encode_png(view));
    }
    return "data:image/jpeg;base64," + base64(data::encode_jpeg(view, kQuality));
  } catch (const std::exception&) {
    return "";  // the file was deleted meanwhile; the next inspection reports it
  }
}

// `count` members of all, spread evenly.
std::vector<std::size_t> spread(const std::vector<std::size_t>& all, std::size_t count) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) {
    some.push_back(all[i * all.size() / std::min(count, all.size())]);
  }
  return some;
}

}  // namespace

std::vector<SheetRow> sheet_rows(const Inspection& found) {
  std::vector<std::vector<std::size_t>> by_class(found.folder.classes.size());
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    if (!found.bad.contains(i)) {
      by_class[static_cast<std::size_t>(found.images[i].label)].push_back(i);
    }
  }
  std::vector<std::size_t> classes;
  for (std::size_t label = 0; label < by_class.size(); ++label) {
    if (!by_class[label].empty()) {
      classes.push_back(label);
    }
  }
  classes = spread(classes, kMostRows);
  const std::size_t in_row =
      std::clamp<std::size_t>(kMostInSheet / std::max<std::size_t>(classes.size(), 1), 1, kMostInRow);
  std::vector<SheetRow> rows;
  for (const std::size_t label : classes) {
    rows.push_back({label, spread(by_class[label], in_row)});
  }
  return rows;
}

std::map<std::size_t, std::string> thumbnails(const Inspection& found, const std::vector<std::size_t>& places,
                                              std::size_t budget) {
  const std::size_t count = std::min(places.size(), found.stopped ? kAfterStop : places.size());
  std::vector<std::string> uris(count);
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < found.threads; ++i) {
      threads.emplace_back([&] {
        ImageLooker looker;
        std::vector<std::byte> bytes;
        for (std::size_t place = next++; place < count; place = next++) {
          uris[place] = data_uri(found, places[place], looker, bytes);
        }
      });
    }
  }
  std::map<std::size_t, std::string> result;
  for (std::size_t i = 0; i < count; ++i) {
    if (uris[i].empty() || uris[i].size() > budget) {
      continue;
    }
    if (result.emplace(places[i], uris[i]).second) {
      budget -= uris[i].size();
    }
  }
  return result;
}

}  // namespace stoker::study
