// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/reading.h"

#include "stoker/base/error.h"

namespace stoker::tasks {

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

augment::Interpolation interpolation_of(const ImageOptions& options) {
  return interpolation_from(options.interpolation).value();  // the table of options allows only these names
}

bool decodes_fast(const ImageOptions& options) {
  const bool fast = options.decode == "fast";
  if (fast && options.cache > 0) {
    fail<ConfigError>("tasks.image",
                      "decode=fast decodes only the crop of an image, but cache={} keeps whole images; set cache=0 or "
                      "decode=exact",
                      options.cache);
  }
  return fast;
}

data::DecodeLimits limits_of(const ImageOptions& options) {
  data::DecodeLimits limits;
  limits.strict = options.strict;
  return limits;
}

}  // namespace stoker::tasks
