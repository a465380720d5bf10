// SPDX-License-Identifier: Apache-2.0
// The content of a file in artifacts/ (docs/formats.md) for a log with images and text: a PNG, or a JSON file of kind
// gallery or text. Used by the TensorBoard sink. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/io/loggers/tensorboard_messages.h"

namespace stoker::io {

struct ShownArtifact {
  std::string title;        // without the step, so that a series has one title
  std::vector<Png> images;  // for a gallery the first 16
  std::string captions;     // of a gallery, as a Markdown list
  std::string text;         // Markdown
};

// Text as Markdown that shows it unchanged.
[[nodiscard]] std::string markdown(std::string_view text);

// For other kinds (tables, matrices) only the title. name: the title of a PNG. DataError with the file name if it is
// unreadable or invalid; an unreadable image of a gallery is mentioned in the captions instead.
[[nodiscard]] ShownArtifact read_artifact(const std::filesystem::path& file, const std::string& name);

}  // namespace stoker::io
