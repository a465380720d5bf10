// SPDX-License-Identifier: Apache-2.0
// A tip: a habit that tutorials recommend, as two ways to do the same work, without it and with it. known_tips() lists
// them; the tips table measures them. One thread at a time.
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

// What a cell of the table is measured on.
struct TipCase {
  std::string model;
  c10::Device device = c10::kCPU;
  int cores = 1;  // that the ways may keep busy
  // For tests, where both ways must come to the same numbers: kDouble, fewer samples, an optimizer whose steps are
  // proportional to the gradients, and a look at what the steps work on.
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t batch = 0;
  bool plain_sgd = false;
  std::function<void(const core::Batch&)> watch = {};  // told of each batch before the engine's step takes it
};

// One way to do the work: a call is a whole training step, or several that do the other way's one, an evaluation, or an
// epoch; over as many samples as the other way's.
struct Way {
  Side side;
  // What the calls have come to: parameters, or an evaluation's totals. For tests.
  std::function<std::vector<core::NamedTensor>()> outcome;
};

enum class Need {
  kNothing,
  kGpu,
  kHalfUnits  // a GPU, or a CPU that computes with float16
};

struct Tip {
  std::string id;             // "grads-to-none"
  std::string title;          // a sentence's worth, for people
  std::string without, with;  // the two ways in a few words
  Need need = Need::kNothing;
  std::vector<std::string> models;  // that it concerns
  std::function<Way(const TipCase&, bool with)> make;
  bool own_threads = false;  // works beside the calling thread, whose CPU time says nothing then
  bool counts_bytes = true;  // false: the peak of bytes says nothing here, or cannot be had
};

// In the order of the table.
[[nodiscard]] const std::vector<Tip>& known_tips();

}  // namespace stoker::study
