// SPDX-License-Identifier: Apache-2.0
// Decides where a pipeline cuts the run's model: by the time and the bytes of its segments, measured on the run's first
// batch. Called by set_up() on rank 0. One thread.
#pragma once

#include <string>

#include "stoker/job/request.h"

namespace stoker::job {

struct Setup;

// As pipeline_cut= takes it.
struct PipelineCut {
  std::string segments;
  std::string reason;  // empty: the plan has a cut that fits
};

// ConfigError if the model has fewer parts than pipeline= asks for, or if a stage does not fit memory_limit=.
[[nodiscard]] PipelineCut choose_pipeline_cut(const Setup& setup, const Say& say);

}  // namespace stoker::job
