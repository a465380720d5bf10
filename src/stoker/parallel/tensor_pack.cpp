// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/tensor_pack.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace stoker::parallel {
namespace {

constexpr std::int64_t kAlign = 64;  // bytes of a cache line

std::vector<std::int64_t> contiguous_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i > 0; --i) {
    strides[i - 1] = stride;
    stride *= std::max<std::int64_t>(1, sizes[i - 1]);
  }
  return strides;
}

std::int64_t values_of(const TensorForm& form) {
  std::int64_t values = form.defined ? 1 : 0;
  for (const std::int64_t size : form.sizes) {
    values *= size;
  }
  return values;
}

// Where each tensor begins, and the end.
std::vector<std::int64_t> offsets_of(const ListForm& form) {
  std::vector<std::int64_t> offsets{kAlign};
  for (const TensorForm& each : form) {
    const std::int64_t bytes = values_of(each) * static_cast<std::int64_t>(c10::elementSize(each.type));
    offsets.push_back(offsets.back() + (bytes + kAlign - 1) / kAlign * kAlign);
  }
  return offsets;
}

}  // namespace

ListForm form_of(const core::TensorList& list) {
  ListForm form;
  for (const at::Tensor& each : list) {
    TensorForm& own = form.emplace_back();
    own.defined = each.defined();
    if (each.defined()) {
      own.takes_gradient = each.requires_grad();
      own.type = each.scalar_type();
      own.sizes = each.sizes().vec();
      own.strides = each.is_non_overlapping_and_dense() ? each.strides().vec() : contiguous_strides(each.sizes());
    }
  }
  return form;
}

ListForm gradients_form(const ListForm& form) {
  ListForm gradients;
  std::ranges::copy_if(form, std::back_inserter(gradients), &TensorForm::takes_gradient);
  return gradients;
}

at::Tensor to_numbers(const ListForm& form) {
  std::vector<std::int64_t> numbers;
  for (const TensorForm& each : form) {
    numbers.insert(numbers.end(), {each.defined ? 1 : 0, each.takes_gradient ? 1 : 0,
                                   static_cast<std::int64_t>(each.type), std::ssize(each.sizes)});
    numbers.insert(numbers.end(), each.sizes.begin(), each.sizes.end());
    numbers.insert(numbers.end(), each.strides.begin(), each.strides.end());
  }
  at::Tensor message = at::empty({std::ssize(numbers)}, at::kLong);
  std::ranges::copy(numbers, message.mutable_data_ptr<std::int64_t>());
  return message;
}

ListForm from_numbers(const at::Tensor& numbers) {
  ListForm form;
  const auto* next = numbers.const_data_ptr<std::int64_t>();
  for (const auto* const end = next + numbers.numel(); next < end;) {
    TensorForm& own = form.emplace_back();
    own.defined = *next++ != 0;
    own.takes_gradient = *next++ != 0;
    own.type = static_cast<at::ScalarType>(*next++);
    const std::int64_t dimensions = *next++;
    own.sizes.assign(next, next + dimensions);
    next += dimensions;
    own.strides.assign(next, next + dimensions);
    next += dimensions;
  }
  return form;
}

std::int64_t pack_bytes(const ListForm& form) { return offsets_of(form).back(); }

at::Tensor pack(const ListForm& form, const core::TensorList* list) {
  const at::NoGradGuard no_grad;
  at::Tensor result = at::empty({pack_bytes(form)}, at::kByte);
  *reinterpret_cast<std::int64_t*>(result.mutable_data_ptr<std::uint8_t>()) = list != nullptr ? 1 : 0;
  if (list != nullptr) {
    const core::TensorList places = unpack(form, result);
    for (std::size_t i = 0; i < form.size(); ++i) {
      if (form[i].defined) {
        (*list)[i].defined() ? places[i].copy_((*list)[i]) : places[i].zero_();
      }
    }
  }
  return result;
}

bool has_values(const at::Tensor& pack) {
  return *reinterpret_cast<const std::int64_t*>(pack.const_data_ptr<std::uint8_t>()) != 0;
}

core::TensorList unpack(const ListForm& form, const at::Tensor& pack) {
  const at::NoGradGuard no_grad;
  const std::vector<std::int64_t> offsets = offsets_of(form);
  core::TensorList list;
  for (std::size_t i = 0; i < form.size(); ++i) {
    at::Tensor& own = list.emplace_back();
    if (form[i].defined) {  // no view: the model may change it in place
      own = at::empty({0}, form[i].type);
      own.set_(pack.storage(), offsets[i] / static_cast<std::int64_t>(c10::elementSize(form[i].type)), form[i].sizes,
               form[i].strides);
    }
  }
  return list;
}

}  // namespace stoker::parallel
