// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/augment.h"

#include <algorithm>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

// A tenth of the image, as in SimCLR (Chen et al. 2020), odd, and within the limit of the kernel.
int blur_kernel(int side) { return std::clamp(side / 20 * 2 + 1, 3, 2 * augment::BlurDraw::kMaxRadius + 1); }

}  // namespace

void apply_augment(const ImageOptions& options, augment::ImagePolicy& policy) {
  policy.pad = static_cast<int>(options.crop_pad);
  if (const int side = std::min(policy.out_width, policy.out_height);
      policy.crop == augment::Crop::kPad && policy.pad >= side) {
    fail<ConfigError>("tasks.image_augment", "crop_pad must be below image_size, which is {}, got {}", side,
                      policy.pad);
  }
  if (options.flip != "augment") {
    policy.flip = options.flip != "off";
    policy.alternate = options.flip == "alternating";
  }
  if (options.rotate > 0 || options.translate > 0 || options.zoom > 0 || options.shear > 0) {
    policy.operations.push_back(augment::Affine{.degrees = options.rotate,
                                                .translate_x = options.translate,
                                                .translate_y = options.translate,
                                                .min_scale = 1 - options.zoom,
                                                .max_scale = 1 + options.zoom,
                                                .shear_x = options.shear});
  }
  if (options.jitter > 0 || options.hue > 0) {
    policy.operations.push_back(augment::ColourJitter{
        .brightness = options.jitter, .contrast = options.jitter, .saturation = options.jitter, .hue = options.hue});
  }
  if (options.grey > 0) {
    policy.operations.push_back(augment::Grey{.probability = options.grey});
  }
  if (options.blur > 0) {
    policy.operations.push_back(augment::Blur{.kernel = blur_kernel(std::min(policy.out_width, policy.out_height)),
                                              .probability = options.blur});
  }
  if (options.erase > 0) {
    policy.operations.push_back(augment::Erase{.probability = options.erase});
  }
}

augment::Mix mix_of(const ImageOptions& options, std::int64_t batch) {
  augment::Mix mix{.mixup = options.mixup, .cutmix = options.cutmix};
  mix.block = options.mix_block > 0 ? static_cast<int>(options.mix_block) : augment::mix_block(batch);
  if (mix.on() && (mix.block < 2 || batch % mix.block != 0)) {
    fail<ConfigError>(
        "tasks.image_augment",
        "mixup and cutmix need blocks of 2 ... {} rows that divide the batch of {}, got {}; set mix_block=N, or"
        " another batch",
        augment::Mix::kMostRows, batch, mix.block);
  }
  return mix;
}

}  // namespace stoker::tasks
