// SPDX-License-Identifier: Apache-2.0
// Labelled images with a plan's options, or with a trained model's card: trains and evaluates image classifiers. Made
// by the kind of task.
#pragma once

#include <memory>

#include "stoker/tasks/image/card.h"
#include "stoker/tasks/image/data.h"
#include "stoker/tasks/image/options.h"

namespace stoker::tasks {

[[nodiscard]] std::unique_ptr<ReadyTask> ready_images(ImageFiles files, ImageOptions options, ImageCard card);

// The network with this name for a card's classes and preprocessing.
[[nodiscard]] std::unique_ptr<Model> make_classifier(const ModelRequest& request, const ImageCard& card,
                                                     ClassifierOptions classifier);

}  // namespace stoker::tasks
