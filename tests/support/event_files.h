// SPDX-License-Identifier: Apache-2.0
// Reads the event files of a run's tensorboard/ folder without TensorBoard, unchecked. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "stoker/base/file.h"

namespace stoker::testing {

struct EventFiles {
  std::map<std::string, std::map<std::int64_t, float>> scalars;      // by tag and step
  std::map<std::string, std::map<std::int64_t, std::string>> texts;  // the last string of a string tensor
  std::map<std::string, int> strings;                                // number of strings in a tag's last value
  std::vector<std::int64_t> starts;                                  // steps of SessionLog START
  std::vector<std::string> hparams;
};

inline void read_value(protozero::pbf_reader value, std::int64_t step, EventFiles& written) {
  std::string tag;
  while (value.next()) {
    switch (value.tag()) {
      case 1: tag = value.get_string(); break;
      case 2: written.scalars[tag][step] = value.get_float(); break;
      case 8:
        written.strings[tag] = 0;
        for (protozero::pbf_reader tensor = value.get_message(); tensor.next();) {
          if (tensor.tag() == 8) {
            written.texts[tag][step] = tensor.get_string();
            ++written.strings[tag];
          } else {
            tensor.skip();
          }
        }
        break;
      default: value.skip();
    }
  }
  if (tag.starts_with("_hparams_/")) {
    written.hparams.push_back(tag);
  }
}

inline void read_event(protozero::pbf_reader event, EventFiles& written) {
  std::int64_t step = 0;
  while (event.next()) {
    switch (event.tag()) {
      case 2: step = event.get_int64(); break;
      case 5:
        for (protozero::pbf_reader summary = event.get_message(); summary.next();) {
          read_value(summary.get_message(), step, written);
        }
        break;
      case 7:
        event.skip();
        written.starts.push_back(step);
        break;
      default: event.skip();
    }
  }
}

[[nodiscard]] inline std::vector<std::filesystem::path> event_files(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(run / "tensorboard")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// All files in the order in which TensorBoard reads them.
[[nodiscard]] inline EventFiles read_event_files(const std::filesystem::path& run) {
  EventFiles written;
  for (const std::filesystem::path& file : event_files(run)) {
    const std::string bytes = stoker::read_text(file);
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, 8);
      read_event(protozero::pbf_reader(bytes.data() + at + 12, length), written);
      at += length + 16;
    }
  }
  return written;
}

}  // namespace stoker::testing
