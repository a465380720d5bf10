// SPDX-License-Identifier: Apache-2.0
// What happens to an image between the decoder and its row of the batch: cropped, scaled, padded, mirrored, and
// changed by a list of operations. First the parameters are drawn from the counter RNG (a function of seed, epoch and
// sample alone), then they are executed. Used by data::SampleReader. Thread-safe as long as every thread has a scratch
// of its own.
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
  kPad,            // training, small images: scaled to the output size if need be, `pad` black pixels around it, and a
                   // random rectangle of the output size of that (torchvision's RandomCrop(size, padding=pad))
};

struct ImagePolicy {
  Crop crop = Crop::kNone;
  int out_width = 224;
  int out_height = 224;
  int resize = 256;         // kResizeCentre: pixels of the short side, at least the output size
  int pad = 4;              // kPad: pixels; tasks::training_policy sets it by the size
  bool flip = false;        // mirror left to right, every second sample
  bool alternate = false;   // flip: which ones is drawn for epoch 0; from then on every sample is mirrored anew every
                            // epoch, so that two epochs show both sides of each (Jordan 2024, airbench)
  double min_scale = 0.08;  // kRandomResized: area of the rectangle, as a share of the image's; also set there
  double max_scale = 1;
  double min_ratio = 3.0 / 4;  // kRandomResized: width / height
  double max_ratio = 4.0 / 3;
  Interpolation interpolation = Interpolation::kBilinear;
  bool shrink = false;  // an image may come at 1/2, 1/4 or 1/8 of its size where it is scaled down that far: other
                        // pixels, but less to decode
  std::vector<Operation> operations = {};  // on the cropped and mirrored image, one after the other
};

// ConfigError that names the field if the policy cannot be carried out.
void check(const ImagePolicy& policy);

// What was drawn: the rectangle of the source, the size it is scaled to, where in the scaled image the output
// begins (outside of it is black), whether it is mirrored, and what is done to it then.
struct ImageDraw {
  int left = 0, top = 0, width = 0, height = 0;
  int scaled_width = 0, scaled_height = 0;
  int offset_x = 0, offset_y = 0;
  bool flipped = false;
  int shrink = 1;  // the source comes at 1 / shrink of its size; the rectangle is of the whole size all the same
  DrawnOperations operations;
  bool operator==(const ImageDraw&) const = default;
};

[[nodiscard]] ImageDraw draw(const ImagePolicy& policy, int width, int height, const DrawKey& key);

// The largest shrink, a power of two and at most `most`, that leaves a pixel for each one that the rectangle is scaled
// to; 1 unless the policy allows it.
[[nodiscard]] int largest_shrink(const ImagePolicy& policy, const ImageDraw& drawn, int most);

// The pixels of the source that execute() reads, at most: those of the rectangle that its window into the scaled
// image needs. Nothing else has to be decoded. Empty (0 x 0) if the output lies wholly outside.
[[nodiscard]] Region needed(const ImagePolicy& policy, const ImageDraw& drawn);

// Writes out_height * out_width * channels bytes (HWC) to out, which must have exactly that size: the rectangle, scaled
// and mirrored, without the operations.
void crop(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
          ResizeScratch& scratch);
// crop(), then the operations.
void execute(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
             ResizeScratch& scratch);

}  // namespace stoker::augment
