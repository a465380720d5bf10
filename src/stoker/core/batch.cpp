// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/batch.h"

#include <ATen/ops/sub.h>

#include <algorithm>

#include "stoker/base/error.h"

namespace stoker::core {

void Batch::set(Field field) {
  if (!field.values.defined()) {
    fail<DataError>("core.batch", "field \"{}\" has no tensor", field.name);
  }
  const bool per_sample = field.layout == Layout::kPerSample;
  const bool ragged = field.layout == Layout::kRagged;
  if (per_sample && (field.values.dim() == 0 || field.values.size(0) != size())) {
    fail<DataError>("core.batch", "field \"{}\" must have {} rows, one per sample, got {}", field.name, size(),
                    field.values.dim() == 0 ? 0 : field.values.size(0));
  }
  if (ragged && (!field.offsets.defined() || field.offsets.numel() != size() + 1)) {
    fail<DataError>("core.batch", "ragged field \"{}\" must have {} offsets", field.name, size() + 1);
  }
  const auto same_name = std::ranges::find(fields_, field.name, &Field::name);
  if (same_name != fields_.end()) {
    *same_name = std::move(field);
  } else {
    fields_.push_back(std::move(field));
  }
}

const Field* Batch::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  return found == fields_.end() ? nullptr : &*found;
}

const at::Tensor& Batch::operator[](std::string_view name) const {
  const Field* field = find(name);
  if (field == nullptr) {
    std::vector<std::string_view> names;
    for (const Field& each : fields_) {
      names.push_back(each.name);
    }
    fail<DataError>("core.batch", "no field \"{}\"; the batch has {}", name, names);
  }
  return field->values;
}

Batch Batch::slice(std::int64_t first, std::int64_t last) const {
  if (first < 0 || last < first || last > size()) {
    fail<ConfigError>("core.batch", "slice [{}, {}) is outside a batch of {}", first, last, size());
  }
  Batch part(position_, {indices_.begin() + first, indices_.begin() + last});
  part.set_part(first_row_ + first, global_size());
  part.fields_.reserve(fields_.size());
  for (const Field& field : fields_) {
    Field cut = field;
    if (field.layout == Layout::kPerSample) {
      cut.values = field.values.slice(0, first, last);
    } else if (field.layout == Layout::kRagged) {
      const auto* offsets = field.offsets.const_data_ptr<std::int64_t>();
      cut.values = field.values.slice(0, offsets[first], offsets[last]);
      cut.offsets = at::sub(field.offsets.slice(0, first, last + 1), offsets[first]);
    }
    part.fields_.push_back(std::move(cut));
  }
  return part;
}

}  // namespace stoker::core
