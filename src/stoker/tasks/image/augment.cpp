// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/augment.h"

#include <algorithm>
#include <string>

#include "stoker/base/error.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

// The value of a setting; off where an older plan lacks it.
double amount(const core::TaskValues& own, std::string_view key) {
  return own.contains(key) ? real_value(own, key) : 0;
}

// A tenth of the image, as SimCLR has it (Chen et al. 2020), odd, and what the kernel can hold.
int blur_kernel(int side) { return std::clamp(side / 20 * 2 + 1, 3, 2 * augment::BlurDraw::kMaxRadius + 1); }

}  // namespace

std::vector<core::TaskSetting> augment_settings() {
  return {
      whole_setting("crop_pad", 0, 4095, "a sixteenth of image_size",
                    "pad_crop: black pixels around training images, as many as a crop moves at most"),
      choice_setting("flip", {"augment", "random", "alternating", "off"}, "augment: as that one's name says",
                     "mirror training images; alternating: at random once, then every epoch"),
      real_setting("rotate", 0, 180, "0: off", "degrees that training images are turned at most, to either side"),
      real_setting("translate", 0, 1, "0: off", "share of the side that training images are moved at most"),
      real_setting("zoom", 0, 0.9, "0: off", "training images are scaled by 1 - zoom to 1 + zoom"),
      real_setting("shear", 0, 80, "0: off", "degrees that training images are sheared at most, to either side"),
      real_setting("jitter", 0, 1, "0: off",
                   "brightness, contrast and saturation of training images, by 1 - jitter to 1 + jitter"),
      real_setting("hue", 0, 0.5, "0: off", "share of a turn that hues of training images move at most"),
      real_setting("grey", 0, 1, "0: off", "share of training images that lose their colours"),
      real_setting("blur", 0, 1, "0: off", "share of training images that are blurred, by up to 2 pixels"),
      real_setting("erase", 0, 1, "0: off", "share of training images of which a rectangle is painted over"),
      real_setting("mixup", 0, 100, "0: off", "alpha of the Beta by which two images and targets are averaged"),
      real_setting("cutmix", 0, 100, "0: off", "alpha of the Beta by which a rectangle comes from another image"),
      whole_setting("mix_block", 1, augment::Mix::kMostRows, "the largest up to 16 that divides the batch",
                    "rows among which mixup and cutmix find partners; divides every rank's part of a batch"),
  };
}

void add_augment_rows(RecipeRows& rows, int image_size, std::int64_t batch) {
  rows.add("crop_pad", std::max(1, image_size / 16), "2 at 32 pixels, as airbench has it (Jordan 2024)");
  rows.add("flip", "augment", "as the name of augment says");
  for (const char* key :
       {"rotate", "translate", "zoom", "shear", "jitter", "hue", "grey", "blur", "erase", "mixup", "cutmix"}) {
    rows.add(key, 0, "off; asked for where the data is few");
  }
  rows.add("mix_block", augment::mix_block(batch), "the largest up to 16 that divides the batch");
}

void apply_augment_settings(const core::TaskValues& own, augment::ImagePolicy& policy) {
  policy.pad = own.contains("crop_pad") ? static_cast<int>(whole_value(own, "crop_pad"))
                                        : std::max(1, std::min(policy.out_width, policy.out_height) / 8);
  if (const int side = std::min(policy.out_width, policy.out_height);
      policy.crop == augment::Crop::kPad && policy.pad >= side) {
    fail<ConfigError>("tasks.image_augment", "crop_pad must be below image_size, which is {}, got {}", side,
                      policy.pad);
  }
  const std::string flip = text_or(own, "flip", "augment");
  if (flip != "augment") {
    policy.flip = flip != "off";
    policy.alternate = flip == "alternating";
  }
  const double rotate = amount(own, "rotate"), translate = amount(own, "translate"), zoom = amount(own, "zoom"),
               shear = amount(own, "shear"), jitter = amount(own, "jitter"), hue = amount(own, "hue"),
               grey = amount(own, "grey"), blur = amount(own, "blur"), erase = amount(own, "erase");
  if (rotate > 0 || translate > 0 || zoom > 0 || shear > 0) {
    policy.operations.push_back(augment::Affine{.degrees = rotate,
                                                .translate_x = translate,
                                                .translate_y = translate,
                                                .min_scale = 1 - zoom,
                                                .max_scale = 1 + zoom,
                                                .shear_x = shear});
  }
  if (jitter > 0 || hue > 0) {
    policy.operations.push_back(
        augment::ColourJitter{.brightness = jitter, .contrast = jitter, .saturation = jitter, .hue = hue});
  }
  if (grey > 0) {
    policy.operations.push_back(augment::Grey{.probability = grey});
  }
  if (blur > 0) {
    policy.operations.push_back(
        augment::Blur{.kernel = blur_kernel(std::min(policy.out_width, policy.out_height)), .probability = blur});
  }
  if (erase > 0) {
    policy.operations.push_back(augment::Erase{.probability = erase});
  }
}

augment::Mix mix_of(const core::TaskValues& own, std::int64_t batch) {
  augment::Mix mix{.mixup = amount(own, "mixup"), .cutmix = amount(own, "cutmix")};
  const auto asked = static_cast<int>(amount(own, "mix_block"));
  mix.block = asked > 0 ? asked : augment::mix_block(batch);
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
