// SPDX-License-Identifier: Apache-2.0
// The path of an image from the decoder to its row of the batch: crop, scale, pad, mirror, and a list of operations.
// First the parameters are drawn from the counter RNG (a function of seed, epoch and sample only), then they are
// executed. Used by data::SampleReader. Thread-safe if every thread has its own scratch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/image.h"
#include "stoker/augment/operation.h"
#include "stoker/augment/resize.h"

namespace stoker::augment {

enum class Crop {
  kNone,           // the whole image, scaled to the output size
  kResizeCentre,   // evaluation: short side scaled to `resize`, then the centre (torchvision's Resize + CenterCrop)
  kRandomResized,  // training: a random rectangle, scaled to the output size (torchvision's RandomResizedCrop)
  kPad,            // training, small images: scaled to the output size if needed, `pad` black pixels around it, then a
                   // random rectangle of the output size (torchvision's RandomCrop(size, padding=pad))
};

struct ImagePolicy {
  Crop crop = Crop::kNone;
  int out_width = 224;
  int out_height = 224;
  int resize = 256;         // kResizeCentre: pixels of the short side, at least the output size
  int pad = 4;              // kPad: pixels; tasks::training_policy sets it by the size
  bool flip = false;        // mirror left to right with probability 1/2
  bool alternate = false;   // flip: drawn for epoch 0; after that the mirroring of every sample alternates from epoch
                            // to epoch, so that two epochs show both sides (Jordan 2024, airbench)
  double min_scale = 0.08;  // kRandomResized: area of the rectangle, as a share of the image; also set there
  double max_scale = 1;
  double min_ratio = 3.0 / 4;  // kRandomResized: width / height
  double max_ratio = 4.0 / 3;
  Interpolation interpolation = Interpolation::kBilinear;
  bool shrink = false;  // an image may be decoded at 1/2, 1/4 or 1/8 of its size if it is scaled down that far: other
                        // pixels, but less to decode
  std::vector<Operation> operations = {};  // applied to the cropped and mirrored image, in order
};

// ConfigError with the name of the field if the policy cannot be executed.
void check(const ImagePolicy& policy);

// The drawn parameters: the rectangle of the source, its scaled size, the position of the output in the scaled image
// (outside is black), mirroring, and the operations.
struct ImageDraw {
  int left = 0, top = 0, width = 0, height = 0;
  int scaled_width = 0, scaled_height = 0;
  int offset_x = 0, offset_y = 0;
  bool flipped = false;
  int shrink = 1;  // the source is decoded at 1 / shrink of its size; the rectangle still refers to the full size
  DrawnOperations operations;
  bool operator==(const ImageDraw&) const = default;
};

[[nodiscard]] ImageDraw draw(const ImagePolicy& policy, int width, int height, const DrawKey& key);

// The largest shrink, a power of two and at most `most`, that keeps at least one source pixel per scaled pixel of the
// rectangle; 1 unless the policy allows shrinking.
[[nodiscard]] int largest_shrink(const ImagePolicy& policy, const ImageDraw& drawn, int most);

// The region of the source that execute() may read: the part of the rectangle for its window into the scaled image.
// Nothing else has to be decoded. Empty (0 x 0) if the output is entirely outside.
[[nodiscard]] Region needed(const ImagePolicy& policy, const ImageDraw& drawn);

// Writes the scaled and mirrored rectangle, without the operations: out_height * out_width * channels bytes (HWC). out
// must have exactly that size.
void crop(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
          ResizeScratch& scratch);
// crop(), then the operations.
void execute(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
             ResizeScratch& scratch);

}  // namespace stoker::augment
