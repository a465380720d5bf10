// SPDX-License-Identifier: Apache-2.0
// Pictures with what a classifier says of them, for reports: the mistakes it is surest of, and a few as they come. Used
// by image_task. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "stoker/data/image_folder.h"
#include "stoker/tasks/image_task.h"

namespace stoker::tasks {

// verdicts: float32 [samples of the split, 3] on the CPU: target, prediction, its probability. At most 24 pictures
// each, as the network sees them, at most 96 pixels a side. A picture that cannot be read is left out.
[[nodiscard]] std::vector<Exhibit> image_exhibits(const data::ImageSplit& split, const at::Tensor& verdicts,
                                                  const ImageCard& card);

}  // namespace stoker::tasks
