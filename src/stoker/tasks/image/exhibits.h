// SPDX-License-Identifier: Apache-2.0
// Images with the predictions of a classifier, for reports: its most confident mistakes, and a few others. Used by
// the image task. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/data/folder/image_folder.h"
#include "stoker/tasks/image/card.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

// verdicts: float32 [readable samples, 3] on the CPU: target, prediction, its probability. indices: of each row's
// sample in the split's source. At most 24 images each, as the network sees them, at most 96 pixels per side.
// Unreadable images are skipped.
[[nodiscard]] std::vector<Exhibit> image_exhibits(const data::ImageSplit& split, const at::Tensor& verdicts,
                                                  std::span<const std::int64_t> indices, const ImageCard& card);

}  // namespace stoker::tasks
