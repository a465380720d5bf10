// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/recompute.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "stoker/base/fmt.h"
#include "stoker/memory/frame.h"
#include "stoker/memory/recompute_selection.h"
#include "stoker/memory/saved_tensors.h"

namespace stoker::memory {
namespace {

using Forward = std::function<core::TensorList(core::TensorList)>;

Forward parts(core::Trainable& model, int segment, PartRange range) {
  return [&model, segment, range](core::TensorList values) {
    for (int part = range.first; part < range.last; ++part) {
      values = model.forward_inner(segment, part, std::move(values));
    }
    return values;
  };
}

// "layer0/up+gelu".
std::string name_of(const core::Trainable& model, int segment, PartRange range) {
  const std::vector<std::string> all = model.inner_segments(segment);
  return fmt::format("{}/{}", model.segment_name(segment),
                     fmt::join(all.begin() + range.first, all.begin() + range.last, "+"));
}

Forward chain(std::vector<Forward> links) {
  return [links = std::move(links)](core::TensorList values) {
    for (const Forward& link : links) {
      values = link(std::move(values));
    }
    return values;
  };
}

}  // namespace

RecomputePlan::RecomputePlan(core::Trainable& model, const RecomputeChoice& choice) {
  for (const SelectedSegment& selected : select_segments(model, choice)) {
    const int segment = static_cast<int>(segments_.size());
    std::vector<Forward> links;
    int done = 0;
    for (const PartRange range : selected.parts) {
      links.push_back(parts(model, segment, {done, range.first}));
      links.push_back(framed(model, segment, name_of(model, segment, range), parts(model, segment, range)));
      done = range.last;
    }
    Forward forward;
    if (!links.empty()) {
      links.push_back(parts(model, segment, {done, static_cast<int>(model.inner_segments(segment).size())}));
      forward = chain(std::move(links));
    }
    if (selected.whole) {
      if (!forward) {
        forward = [&model, segment](core::TensorList values) {
          return model.forward_segment(segment, std::move(values));
        };
      }
      forward = framed(model, segment, model.segment_name(segment), std::move(forward));
    }
    segments_.push_back(std::move(forward));
  }
  if (!segments_.empty()) {
    hook_saved_tensors();
  }
}

Forward RecomputePlan::framed(const core::Trainable& model, int segment, std::string name, Forward forward) {
  auto part = std::make_shared<FramePart>();
  part->name = "segment " + name;
  part->forward = std::move(forward);
  for (const core::Parameter& each : model.parameters()) {
    if (std::ranges::find(each.segments, segment) != each.segments.end()) {
      part->parameters.push_back(each.tensor);
    }
  }
  part->statistics = model.norm_buffers();
  if (!model.parameters().empty()) {
    part->device = model.parameters().front().tensor.device();
  }
  part->draws = model.draws(segment);
  names_.push_back(std::move(name));
  return [part = std::shared_ptr<const FramePart>(std::move(part))](core::TensorList values) {
    return Frame::run(part, std::move(values));
  };
}

core::TensorList RecomputePlan::forward(core::Trainable& model, core::TensorList inputs,
                                        const std::function<void(int segment)>& before) const {
  return forward_segments(model, {0, model.segments()}, std::move(inputs), before);
}

core::TensorList RecomputePlan::forward_segments(core::Trainable& model, SegmentRange range, core::TensorList inputs,
                                                 const std::function<void(int segment)>& before) const {
  const bool plain = empty() || !at::GradMode::is_enabled();
  for (int segment = range.first; segment < range.last; ++segment) {
    if (before && model.draws(segment)) {
      before(segment);
    }
    const Forward* const recomputed = plain ? nullptr : &segments_[static_cast<std::size_t>(segment)];
    inputs = recomputed != nullptr && *recomputed ? (*recomputed)(std::move(inputs))
                                                  : model.forward_segment(segment, std::move(inputs));
  }
  return inputs;
}

}  // namespace stoker::memory
