// SPDX-License-Identifier: Apache-2.0
// Photographs in memory, and ways to decode them that take turns image by image. Used by jpeg_cases.cpp. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure_cases.h"
#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_rows.h"

namespace stoker::bench {

struct Photo {
  std::vector<std::byte> bytes;
  std::string kind;  // "4:4:4", "4:2:0", "4:2:2", "grey", "progressive" or "other"
  int width = 0, height = 0;
  data::JpegRows rows;  // all of them, if the decoder tells rows
};

// The images of a folder. Each is decoded once as a whole, which tells its rows.
[[nodiscard]] std::vector<Photo> photos_of(const std::string& folder);

// Pixels that were decoded: only `region` of the image may be read.
struct Decoded {
  augment::ImageView image;
  augment::Region region;
};

// What is timed.
struct Job {
  std::vector<std::string> ways;
  // Prepares the number-th image of a photo, and names the group that it counts for; empty: it is left out.
  std::function<std::string(const Photo& photo, std::size_t index, std::int64_t number)> prepare;
  // Decodes that image in a way (a place in `ways`). file: the photo's bytes, read a moment ago.
  std::function<Decoded(Bytes file, Photo& photo, std::size_t way)> call;
  bool same = true;  // all ways give the same pixels, which is checked before anything is timed; DataError if not
};

struct Turns {
  std::int64_t turns = 7;
  std::int64_t images = 1;  // of each photo per turn
};

// By group, and "all": "images": per turn; "ms": by way, per image, one figure per turn (CPU time of this thread);
// "by_photo": by way, the time of the first way divided by that of this way, for the photos at 10, 50 and 90 %.
[[nodiscard]] Json timed(std::vector<Photo>& photos, const Job& job, const Turns& turns);

}  // namespace stoker::bench
