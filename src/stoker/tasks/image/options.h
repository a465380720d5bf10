// SPDX-License-Identifier: Apache-2.0
// All options of image classification, on one page with options.cpp: parsed once, then read as plain fields. Initial
// values are used if a checkpoint is evaluated without a run: its card has no plan.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/core/option_table.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/sampling.h"

namespace stoker::tasks {

// Initial values are those of a checkpoint that is evaluated without a run: its card has no plan.
struct ImageOptions : ClassOptions, SamplingOptions {
  // Reading.
  std::int64_t image_size = 0;  // pixels per side; 0: not set
  std::string interpolation = "bilinear";
  bool strict = true;            // an image with a decoder warning is unreadable
  std::string decode = "exact";  // or "fast"
  std::string on_bad = "replace";
  double bad_budget = 0.001;  // share of a split
  bool retry_bad = false;
  std::int64_t cache = 0;  // MB of decoded images
  std::string resident = "off";
  std::string norm = "batch";  // or "group": after the network's convolutions
  // Augmentation; a 0 is off.
  std::string augment = "none";
  std::int64_t crop_pad = 0;  // pixels
  std::string flip = "augment";
  double rotate = 0;     // degrees
  double translate = 0;  // share of the side
  double zoom = 0;
  double shear = 0;  // degrees
  double jitter = 0;
  double hue = 0;   // share of a turn
  double grey = 0;  // share of images, as the next two
  double blur = 0;
  double erase = 0;
  double mixup = 0;            // alpha of a Beta
  double cutmix = 0;           // likewise
  std::int64_t mix_block = 0;  // rows; 0: the largest that divides the batch
};

[[nodiscard]] const core::OptionTable<ImageOptions>& image_options();

}  // namespace stoker::tasks
