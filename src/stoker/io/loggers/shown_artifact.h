// SPDX-License-Identifier: Apache-2.0
// What a log with images and text can show of a file under a run's artifacts/ (docs/formats.md): a PNG, or a JSON
// file of the kinds gallery and text. Used by the TensorBoard sink. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/io/loggers/tensorboard_messages.h"

namespace stoker::io {

struct ShownArtifact {
  std::string title;        // without the step, so that a series has one title
  std::vector<Png> images;  // of a gallery the first 16
  std::string captions;     // a gallery's, as a list in Markdown
  std::string text;         // Markdown
};

// Text as Markdown that shows it as it is.
[[nodiscard]] std::string markdown(std::string_view text);

// Of other kinds (tables, matrices) nothing but the title. name: the title of a PNG. DataError that names the file if
// it cannot be read or is not what it should be; a gallery's image that cannot be read is said in the captions
// instead.
[[nodiscard]] ShownArtifact read_artifact(const std::filesystem::path& file, const std::string& name);

}  // namespace stoker::io
