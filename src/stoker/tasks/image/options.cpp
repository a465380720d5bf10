// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/options.h"

#include "stoker/augment/mix.h"

namespace stoker::tasks {
namespace {

using core::always;
using core::Choice;
using core::depends;
using core::Flag;
using core::Real;
using core::Whole;
using O = ImageOptions;
using Rows = std::vector<core::OptionRow<O>>;

constexpr auto B = core::OptionGroup::kBehaviour;
constexpr auto P = core::OptionGroup::kPerformance;

// A row per option: field, key, group, type, default with its reason, help, names in other tools.
// clang-format off
Rows reading_options() {
  return {
      {&O::image_size, {"image_size", B, Whole{4, 4096}, depends("the images' own size if at most 96, else 224"),
                        "pixels per side", {"img_size", "size", "resolution", "imgsz"}}},
      {&O::interpolation, {"interpolation", B, Choice{{"bilinear", "bicubic"}},
                           always("bilinear", "usual in torchvision's recipes; bicubic is sharper and slower"),
                           "how images are scaled, in training, evaluation and prediction; antialiased, as in Pillow"}},
      {&O::strict, {"strict", B, Flag{}, always("on", "decoders fill damaged parts with invented pixels"),
                    "treat images with a decoder warning (truncated JPEG, wrong checksum) as unreadable; off: use "
                    "the part that could be decoded"}},
      {&O::decode, {"decode", B, Choice{{"exact", "fast"}},
                    always("exact", "fast changes pixels, and gains little, for progressive and other rare JPEGs only"),
                    "fast: large training JPEGs of the rarer kinds (progressive, CMYK, restart markers) are decoded "
                    "at 1/2, 1/4 or 1/8 of their size, and images are not kept in memory; "
                    "pixel values can differ by dozens (of 255) at sharp contours"}},
  };
}

Rows keeping_options() {
  return {
      {&O::cache, {"cache", P, Whole{0, 1'000'000},
                   depends("all images, if they fit into a quarter of the free memory"),
                   "MB of decoded images to keep in memory; 0: none"}},
      {&O::resident, {"resident", P, Choice{{"auto", "off"}}, depends("auto: only if they are small and fit on the GPU"),
                      "keep training images on the GPU after epoch 1 (same results), with augment=none, flip, pad_crop "
                      "or pad_crop_flip; off: never"}},
      {&O::on_bad, {"on_bad", B, Choice{{"replace", "skip", "raise"}},
                    always("replace", "one damaged image should not stop a run"),
                    "unreadable images: replace with another image, skip, or stop the run"}},
      {&O::bad_budget, {"bad_budget", B, Real{0, 1}, always("0.001", "more suggests that the data is damaged"),
                        "stop the run if more than this fraction of a split is unreadable; one image is always "
                        "allowed"}},
      {&O::retry_bad, {"retry_bad", B, Flag{}, always("off", "an unchanged file is as unreadable as before"),
                       "retry unchanged images that an earlier run could not read"}},
  };
}

Rows network_options() {
  return {
      {&O::norm, {"norm", B, Choice{{"batch", "group"}}, always("batch", "more accurate if passes have enough samples"),
                  "norm layers of cnn and ResNets; group: independent of the other samples, so that small passes "
                  "(microbatch=) train as the whole batch does"}},
  };
}

Rows augment_options() {
  const auto off = [] { return always("0", "off; useful for small data sets"); };
  return {
      {&O::augment, {"augment", B,
                     Choice{{"none", "flip", "pad_crop", "pad_crop_flip", "resized_crop", "resized_crop_flip"}},
                     depends("chosen by the size and colour of the images"), "random changes to training images",
                     {"augmentation", "transforms"}}},
      {&O::crop_pad, {"crop_pad", B, Whole{0, 4095}, depends("a sixteenth of image_size"),
                      "pad_crop: black border in pixels per side; a crop shifts by at most this much"}},
      {&O::flip, {"flip", B, Choice{{"augment", "random", "alternating", "off"}},
                  always("augment", "augment= decides"),
                  "mirror training images; alternating: a random half in epoch 1, the other half in epoch 2, and so on",
                  {"hflip"}}},
      {&O::rotate, {"rotate", B, Real{0, 180}, off(), "largest rotation of training images, degrees to either side"}},
      {&O::translate, {"translate", B, Real{0, 1}, off(), "largest shift of training images, fraction of the side"}},
      {&O::zoom, {"zoom", B, Real{0, 0.9}, off(), "scale training images by 1 - zoom to 1 + zoom"}},
      {&O::shear, {"shear", B, Real{0, 80}, off(), "largest shear of training images, degrees to either side"}},
      {&O::jitter, {"jitter", B, Real{0, 1}, off(),
                    "scale brightness, contrast and saturation of training images by 1 - jitter to 1 + jitter",
                    {"color_jitter", "colour_jitter"}}},
      {&O::hue, {"hue", B, Real{0, 0.5}, off(), "largest hue shift of training images, fraction of the hue circle"}},
      {&O::grey, {"grey", B, Real{0, 1}, off(), "probability of turning a training image grey", {"gray", "grayscale"}}},
      {&O::blur, {"blur", B, Real{0, 1}, off(), "probability of blurring a training image, by up to 2 pixels"}},
      {&O::erase, {"erase", B, Real{0, 1}, off(), "probability of erasing a rectangle of a training image",
                   {"random_erasing", "reprob", "cutout"}}},
      {&O::mixup, {"mixup", B, Real{0, 100}, off(), "alpha of the Beta distribution of MixUp; 0: off",
                   {"mixup_alpha"}}},
      {&O::cutmix, {"cutmix", B, Real{0, 100}, off(), "alpha of the Beta distribution of CutMix; 0: off",
                    {"cutmix_alpha"}}},
      {&O::mix_block, {"mix_block", B, Whole{1, augment::Mix::kMostRows},
                       depends("the largest up to 16 that divides the batch"),
                       "mixup and cutmix mix samples only within groups of this size; must divide the batch "
                       "(of each process)"}},
  };
}
// clang-format on

}  // namespace

const core::OptionTable<ImageOptions>& image_options() {
  static const core::OptionTable<ImageOptions> table([] {
    Rows all = reading_options();
    core::append_rows(all, network_options());
    core::append_rows(all, augment_options());
    core::append_rows(all, class_options());
    core::append_rows(all, sampling_options());
    core::append_rows(all, keeping_options());
    return all;
  }());
  return table;
}

}  // namespace stoker::tasks
