// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/recompute_selection.h"

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/nearest.h"

namespace stoker::memory {
namespace {

constexpr std::string_view kWhere = "memory.recompute";

// "layer1" means "layer1" and "layer1.0".
bool means(std::string_view name, std::string_view here) {
  return here.starts_with(name) && (here.size() == name.size() || here[name.size()] == '.');
}

// A name of the choice: "layer1", "attention", "layer1/attention".
struct Name {
  explicit Name(const std::string& written)
      : text(written),
        one(written.find('/') != std::string::npos),
        segment(written.substr(0, written.find('/'))),
        part(one ? written.substr(written.find('/') + 1) : written) {}
  std::string text;
  bool one;  // only the parts of one segment
  std::string segment, part;
  bool used = false;
};

SelectedSegment select_in(const std::string& segment, const std::vector<std::string>& parts, std::vector<Name>& names) {
  SelectedSegment selected;
  std::vector<const Name*> owners(parts.size());  // the first name that means the part
  for (Name& name : names) {
    if (!name.one && means(name.segment, segment)) {
      selected.whole = name.used = true;
      continue;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if ((!name.one || means(name.segment, segment)) && means(name.part, parts[i])) {
        name.used = true;
        owners[i] = owners[i] == nullptr ? &name : owners[i];
      }
    }
  }
  for (int i = 0; i < std::ssize(owners); ++i) {
    const auto* owner = owners[static_cast<std::size_t>(i)];
    if (owner != nullptr && i > 0 && owner == owners[static_cast<std::size_t>(i - 1)]) {
      ++selected.parts.back().last;
    } else if (owner != nullptr) {
      selected.parts.push_back({i, i + 1});
    }
  }
  return selected;
}

// Segments, then names of parts, each once.
std::pair<std::vector<std::string>, std::vector<std::string>> known_names(const core::Trainable& model) {
  std::vector<std::string> segments, parts;
  for (int segment = 0; segment < model.segments(); ++segment) {
    segments.push_back(model.segment_name(segment));
    for (std::string& part : model.inner_segments(segment)) {
      if (std::ranges::find(parts, part) == parts.end()) {
        parts.push_back(std::move(part));
      }
    }
  }
  return {segments, parts};
}

void refuse_unused(const core::Trainable& model, const std::vector<Name>& names) {
  const auto unused = std::ranges::find(names, false, &Name::used);
  if (unused == names.end()) {
    return;
  }
  const auto [segments, parts] = known_names(model);
  std::vector<std::string> all = segments;
  all.insert(all.end(), parts.begin(), parts.end());
  std::string list = fmt::format("the model's segments are {}", fmt::join(segments, ", "));
  if (!parts.empty()) {
    list += fmt::format("; parts of them are {}", fmt::join(parts, ", "));
  }
  list += "; other values are none, all, auto and every:N";
  fail<ConfigError>(kWhere, "recompute: {}", unknown_name("name", unused->text, near_name(unused->text, all), list));
}

}  // namespace

std::vector<SelectedSegment> select_segments(const core::Trainable& model, const RecomputeChoice& choice) {
  using Kind = RecomputeChoice::Kind;
  if (choice.kind == Kind::kNone) {
    return {};
  }
  const int count = model.segments();
  if (count == 1 && model.inner_segments(0).empty()) {
    fail<ConfigError>(kWhere,
                      "the model is one segment without parts, so recomputing it would need as much memory as keeping "
                      "it; set recompute=none, or implement segments() and forward_segment() of its Trainable");
  }
  std::vector<SelectedSegment> selected(static_cast<std::size_t>(count));
  std::vector<Name> names(choice.names.begin(), choice.names.end());
  for (int segment = 0; segment < count; ++segment) {
    SelectedSegment& here = selected[static_cast<std::size_t>(segment)];
    if (choice.kind == Kind::kNames) {
      here = select_in(model.segment_name(segment), model.inner_segments(segment), names);
    } else {
      here.whole = choice.kind == Kind::kAll || segment % choice.every == 0;
    }
  }
  refuse_unused(model, names);
  return selected;
}

}  // namespace stoker::memory
