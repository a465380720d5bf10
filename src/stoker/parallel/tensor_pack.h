// SPDX-License-Identifier: Apache-2.0
// A list of tensors as one flat message, whose size both sides know once they agree on the form of the list. Used by
// StageLink. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::parallel {

struct TensorForm {
  bool defined = true;
  bool takes_gradient = false;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes, strides;  // strides: of its own if it is dense, else contiguous ones
  bool operator==(const TensorForm&) const = default;
};
using ListForm = std::vector<TensorForm>;

[[nodiscard]] ListForm form_of(const core::TensorList& list);
// The gradients of the tensors of a list that take one, in their order.
[[nodiscard]] ListForm gradients_form(const ListForm& form);

// As numbers, for a message: int64 [n]; and back.
[[nodiscard]] at::Tensor to_numbers(const ListForm& form);
[[nodiscard]] ListForm from_numbers(const at::Tensor& numbers);

// A pack is uint8 [pack_bytes(form)] on the host: a head that tells whether it has values, then the tensors.
[[nodiscard]] std::int64_t pack_bytes(const ListForm& form);
// Copies the tensors; an undefined one where the form has one becomes zeros. list: null: a pack without values.
[[nodiscard]] at::Tensor pack(const ListForm& form, const core::TensorList* list);
[[nodiscard]] bool has_values(const at::Tensor& pack);
// Its tensors, which share its memory and do not require gradients.
[[nodiscard]] core::TensorList unpack(const ListForm& form, const at::Tensor& pack);

}  // namespace stoker::parallel
