// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/reading.h"

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {

std::vector<core::TaskSetting> reading_settings() {
  return {
      choice_setting("interpolation", {"bilinear", "bicubic"}, "bilinear",
                     "how images are scaled, in training, evaluation and predictions; antialiased, as Pillow does it"),
      flag_setting(
          "strict", "true",
          "an image that a decoder warns of (a JPEG that ends early, a wrong checksum) is a bad one; false: it is"
          " taken as far as it goes"),
      choice_setting("decode", {"exact", "fast"}, "exact",
                     "fast: training JPEGs come at 1/2, 1/4 or 1/8 of their size where their crop is scaled down that"
                     " far; other pixels, by tens of grey levels at edges; for photographs far larger than image_size"),
  };
}

void add_reading_rows(RecipeRows& rows) {
  rows.add("interpolation", "bilinear", "the usual of torchvision's recipes; bicubic is sharper and slower");
  rows.add("strict", true, "what a decoder makes up is no image");
  rows.add("decode", "exact", "fast changes pixels, and gains nothing on images of about 500 pixels");
}

std::string_view name_of(augment::Interpolation interpolation) {
  return interpolation == augment::Interpolation::kBicubic ? "bicubic" : "bilinear";
}

std::optional<augment::Interpolation> interpolation_from(std::string_view name) {
  for (const augment::Interpolation each : {augment::Interpolation::kBilinear, augment::Interpolation::kBicubic}) {
    if (name_of(each) == name) {
      return each;
    }
  }
  return std::nullopt;
}

augment::Interpolation interpolation_of(const core::TaskValues& own) {
  const std::string name = text_or(own, "interpolation", "bilinear");
  const auto known = interpolation_from(name);
  if (!known) {
    fail<ConfigError>("tasks.image_reading", "interpolation is bilinear or bicubic, got \"{}\"", printable(name));
  }
  return *known;
}

bool decodes_fast(const core::TaskValues& own) {
  const bool fast = text_or(own, "decode", "exact") == "fast";
  if (fast && own.contains("cache") && whole_value(own, "cache") > 0) {
    fail<ConfigError>("tasks.image_reading",
                      "decode=fast decodes an image for its crop alone, cache={} keeps whole ones; set cache=0, or"
                      " decode=exact",
                      text_value(own, "cache"));
  }
  return fast;
}

data::DecodeLimits limits_of(const core::TaskValues& own) {
  data::DecodeLimits limits;
  limits.strict = !own.contains("strict") || flag_value(own, "strict");
  return limits;
}

}  // namespace stoker::tasks
