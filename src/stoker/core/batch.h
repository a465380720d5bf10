// SPDX-License-Identifier: Apache-2.0
// One global batch on its way from the loader to the step: named fields, the dataset indices of its samples, and its
// position in the run. Works for any modality: nothing here says "image". Moved, never shared; not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::core {

enum class Layout {
  kPerSample,  // dimension 0 counts samples
  kRagged,     // values of all samples end to end; offsets says where each one starts
  kPerBatch,   // belongs to the batch as a whole
};

struct Field {
  std::string name;
  at::Tensor values;
  Layout layout = Layout::kPerSample;
  at::Tensor offsets;  // kRagged only: int64 [samples + 1] on the CPU, offsets[0] = 0
};

// The position of a batch in the run. step counts within the epoch.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  bool operator==(const Position&) const = default;
};

class Batch {
 public:
  Batch() = default;
  Batch(Position position, std::vector<std::int64_t> indices) : position_(position), indices_(std::move(indices)) {}
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

  // Adds a field, or replaces the one with this name. DataError if it does not fit size().
  void set(Field field);
  void set(std::string name, at::Tensor per_sample) {
    set(Field{std::move(name), std::move(per_sample), Layout::kPerSample, {}});
  }

  // The values of a field; DataError that lists the fields if the name is unknown.
  [[nodiscard]] const at::Tensor& operator[](std::string_view name) const;
  [[nodiscard]] const Field* find(std::string_view name) const;
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(indices_.size()); }
  // Index of each sample in its dataset.
  [[nodiscard]] const std::vector<std::int64_t>& indices() const { return indices_; }
  [[nodiscard]] Position position() const { return position_; }
  // The position of the first sample in the global batch: not 0 for a slice, or for a rank's part.
  [[nodiscard]] std::int64_t first_row() const { return first_row_; }
  // Samples of the global batch: more than size() for a slice, or for a rank's part.
  [[nodiscard]] std::int64_t global_size() const { return global_size_ < 0 ? size() : global_size_; }
  // Makes it a part of a global batch.
  void set_part(std::int64_t first_row, std::int64_t global_size) {
    first_row_ = first_row;
    global_size_ = global_size;
  }

  // Samples first ... last-1 as a separate batch: views of the same storage, exact for every layout. The only way to
  // split a batch: accumulation, out-of-memory recovery and ranks all use it.
  [[nodiscard]] Batch slice(std::int64_t first, std::int64_t last) const;

 private:
  Position position_;
  std::int64_t first_row_ = 0;
  std::int64_t global_size_ = -1;  // negative: it is the global batch
  std::vector<std::int64_t> indices_;
  std::vector<Field> fields_;
};

}  // namespace stoker::core
