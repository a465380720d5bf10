// SPDX-License-Identifier: Apache-2.0
// A tip: a recommendation of tutorials, as two ways to do the same work, without and with it. known_tips() lists them;
// the tips table measures them. One thread at a time.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/core/trainable.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/study/paired.h"

namespace stoker::study {

// The conditions of a cell of the table.
struct TipCase {
  std::string model;
  c10::Device device = c10::kCPU;
  int cores = 1;  // cores that the ways may use
  // For tests, where both ways must give the same numbers: kDouble, fewer samples, an optimizer whose steps are
  // proportional to the gradients, and access to the batches.
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t batch = 0;
  bool plain_sgd = false;
  std::function<void(const core::Batch&)> watch = {};  // called with each batch before the step of the engine
};

// One way to do the work. A call is a training step (or several that replace one of the other way), an evaluation or an
// epoch, over the same number of samples as in the other way.
struct Way {
  Side side;
  // The result of the calls: parameters, or totals of an evaluation. For tests.
  std::function<std::vector<core::NamedTensor>()> outcome;
};

enum class Need {
  kNothing,
  kCpu,
  kGpu,
  kHalfUnits  // a GPU, or a CPU that computes with float16
};

struct Tip {
  std::string id;             // "grads-to-none"
  std::string title;          // one phrase, for people
  std::string without, with;  // the two ways in a few words
  Need need = Need::kNothing;
  std::vector<std::string> models;  // models that it applies to
  std::function<Way(const TipCase&, bool with)> make;
  bool own_threads = false;  // uses other threads, so the CPU time of the calling thread means nothing
  bool counts_bytes = true;  // false: the peak of bytes is meaningless or unavailable
};

// In the order of the table.
[[nodiscard]] const std::vector<Tip>& known_tips();

}  // namespace stoker::study
