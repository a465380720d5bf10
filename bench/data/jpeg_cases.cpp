// SPDX-License-Identifier: Apache-2.0
// Our JPEG decoder against libjpeg-turbo.
#include <memory>
#include <utility>

#include "jpeg_turns.h"
#include "kernel_target.h"
#include "measure_cases.h"
#include "stoker/augment/image_policy.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"

namespace stoker::bench {
namespace {

using data::JpegPath;

constexpr std::uint64_t kSeed = 1;
constexpr const char* kName = "a photo";

void choose_kernels(const Words& words) {
  if (!words.has("targets")) {
    return;
  }
  if (words.text("targets") != "avx2") {
    fail<ConfigError>("bench.loader_bench", "targets={}: only avx2 is possible", words.text("targets"));
  }
  use_avx2_only();
}

// A way to decode.
struct Way {
  std::string name;
  JpegPath path = JpegPath::kFastest;
  bool rows = false;  // knows the rows of the photo
  bool fast = false;  // may shrink
};

struct Tools {
  Way way;
  std::unique_ptr<data::ImageDecoder> decoder;
  augment::ResizeScratch scratch = {};
};

std::vector<Tools> tools_for(const std::vector<Way>& ways) {
  std::vector<Tools> tools;
  tools.reserve(ways.size());
  for (const Way& way : ways) {
    tools.push_back({way, std::make_unique<data::ImageDecoder>(way.path)});
  }
  return tools;
}

std::vector<std::string> names_of(const std::vector<Tools>& tools) {
  std::vector<std::string> names;
  names.reserve(tools.size());
  for (const Tools& each : tools) {
    names.push_back(each.way.name);
  }
  return names;
}

augment::ImagePolicy crops_of(int side) {
  return {.crop = augment::Crop::kRandomResized, .out_width = side, .out_height = side};
}

augment::ImageDraw draw_of(const augment::ImagePolicy& policy, const Photo& photo, std::size_t index,
                           std::int64_t number) {
  return augment::draw(policy, photo.width, photo.height, {kSeed, static_cast<std::uint32_t>(number), index});
}

// Regions of photos to RGB. region: of the number-th image of a photo.
Json decoding(std::vector<Photo>& photos, const std::vector<Way>& ways, const Turns& turns,
              const std::function<augment::Region(const Photo&, std::size_t, std::int64_t)>& region) {
  std::vector<Tools> tools = tools_for(ways);
  augment::Region now;
  const Job job{.ways = names_of(tools),
                .prepare =
                    [&](const Photo& photo, std::size_t index, std::int64_t number) {
                      now = region(photo, index, number);
                      return photo.kind;
                    },
                .call =
                    [&](Bytes file, Photo& photo, std::size_t way) {
                      Tools& use = tools[way];
                      (void)use.decoder->open(file, 3, {}, kName);
                      return Decoded{use.decoder->decode(now, kName, 1, use.way.rows ? &photo.rows : nullptr), now};
                    }};
  return timed(photos, job, turns);
}

// Random crops to RGB of side x side, resize included, where decode=fast would shrink. Groups are shrinks.
Json shrinking(std::vector<Photo>& photos, int side, const Turns& turns) {
  augment::ImagePolicy policy = crops_of(side);
  policy.shrink = true;
  std::vector<Tools> tools = tools_for({{.name = "library", .path = JpegPath::kLibrary},
                                        {.name = "fast", .path = JpegPath::kLibrary, .fast = true},
                                        {.name = "own"},
                                        {.name = "own, known rows", .rows = true}});
  std::vector<std::uint8_t> row(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3);
  augment::ImageDraw now;
  const Job job{.ways = names_of(tools),
                .prepare =
                    [&](const Photo& photo, std::size_t index, std::int64_t number) {
                      now = draw_of(policy, photo, index, number);
                      const int shrink = augment::largest_shrink(policy, now, 8);
                      return shrink == 1 ? std::string() : std::to_string(shrink);
                    },
                .call =
                    [&](Bytes file, Photo& photo, std::size_t way) {
                      Tools& use = tools[way];
                      (void)use.decoder->open(file, 3, {}, kName);
                      augment::ImageDraw drawn = now;
                      drawn.shrink =
                          use.way.fast ? augment::largest_shrink(policy, now, use.decoder->most_shrink()) : 1;
                      const augment::ImageView image = use.decoder->decode(
                          augment::needed(policy, drawn), kName, drawn.shrink, use.way.rows ? &photo.rows : nullptr);
                      augment::crop(policy, drawn, image, row, use.scratch);
                      return Decoded{{.pixels = row.data(),
                                      .width = side,
                                      .height = side,
                                      .channels = 3,
                                      .stride = std::ptrdiff_t{side} * 3},
                                     {0, 0, side, side}};
                    },
                .same = false};
  return timed(photos, job, turns);
}

std::int64_t known_rows(const std::vector<Photo>& photos) {
  std::int64_t known = 0;
  for (const Photo& photo : photos) {
    known += photo.rows.empty() ? 0 : 1;
  }
  return known;
}

}  // namespace

Json jpeg(const Words& words) {
  choose_kernels(words);
  std::vector<Photo> photos = photos_of(words.text("data"));
  const Turns turns{.turns = words.number("turns", 7), .images = words.number("images", 4)};
  const Way library{.name = "library", .path = JpegPath::kLibrary}, own{.name = "own"};
  const Way rows{.name = "own, known rows", .rows = true};
  const augment::ImagePolicy policy = crops_of(224);
  Json found = {{"photos", photos.size()}, {"known_rows", known_rows(photos)}};
  found["crop"] =
      decoding(photos, {library, own, rows}, turns, [&](const Photo& photo, std::size_t index, std::int64_t number) {
        return augment::needed(policy, draw_of(policy, photo, index, number));
      });
  found["full"] = decoding(photos, {library, own}, turns, [](const Photo& photo, std::size_t, std::int64_t) {
    return augment::Region{0, 0, photo.width, photo.height};
  });
  found["targets"] = kernel_target();
  return found;
}

Json shrink(const Words& words) {
  choose_kernels(words);
  std::vector<Photo> photos = photos_of(words.text("data"));
  const Turns turns{.turns = words.number("turns", 7), .images = words.number("images", 4)};
  Json found = shrinking(photos, static_cast<int>(words.number("side", 64)), turns);
  return {{"photos", photos.size()}, {"shrink", std::move(found)}, {"targets", kernel_target()}};
}

}  // namespace stoker::bench
