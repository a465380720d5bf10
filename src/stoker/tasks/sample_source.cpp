// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/sample_source.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/permutation.h"

namespace stoker::tasks {
namespace {

class SampleSource final : public core::BatchSource {
 public:
  SampleSource(SampleFunction sample, Split split, std::int64_t samples, const BatchRequest& request)
      : sample_(std::move(sample)),
        split_(split),
        samples_(samples),
        batch_(request.batch),
        seed_(request.seed),
        steps_(request.drop_tail ? samples / batch_ : (samples + batch_ - 1) / batch_),
        at_(request.start) {}

  [[nodiscard]] std::optional<core::Batch> next() override {
    if (at_.step >= steps_) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;
    }
    const std::int64_t first = at_.step * batch_;
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch_, samples_ - first)));
    if (split_ == Split::kTrain) {
      Permutation(seed_, epoch(), static_cast<std::uint64_t>(samples_))
          .fill(static_cast<std::uint64_t>(first), indices);
    } else {
      std::iota(indices.begin(), indices.end(), first);
    }
    core::Batch batch(at_, indices);
    for (auto& [name, rows] : collect(indices)) {
      batch.set(name, at::stack(rows));
    }
    ++at_.step;
    return batch;
  }

 private:
  struct Column {
    std::string name;
    std::vector<at::Tensor> rows;
  };

  // Of the order and the draws.
  [[nodiscard]] std::uint32_t epoch() const {
    return split_ == Split::kTrain ? static_cast<std::uint32_t>(at_.epoch) : 0;
  }

  [[nodiscard]] std::vector<Column> collect(const std::vector<std::int64_t>& indices) const {
    std::vector<Column> columns;
    for (const std::int64_t index : indices) {
      const CounterRng random(seed_, epoch(), static_cast<std::uint64_t>(index), RandomOp::kOwn,
                              static_cast<std::uint32_t>(split_));
      std::vector<core::NamedTensor> fields = sample_(split_, index, random);
      if (columns.empty()) {
        for (const core::NamedTensor& field : fields) {
          columns.push_back({field.name, {}});
        }
      }
      add(columns, std::move(fields), index);
    }
    return columns;
  }

  static void add(std::vector<Column>& columns, std::vector<core::NamedTensor> fields, std::int64_t index) {
    const auto differs = [&](const core::NamedTensor& field, const Column& column) {
      return !field.tensor.defined() || field.name != column.name ||
             (!column.rows.empty() && (field.tensor.sizes() != column.rows[0].sizes() ||
                                       field.tensor.scalar_type() != column.rows[0].scalar_type()));
    };
    if (!std::ranges::equal(fields, columns, std::not_fn(differs))) {
      fail<DataError>("tasks.sample_source",
                      "sample {}: its fields differ in number, name, shape or dtype from the batch's first sample",
                      index);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      columns[i].rows.push_back(std::move(fields[i].tensor));
    }
  }

  SampleFunction sample_;
  Split split_;
  std::int64_t samples_, batch_;
  std::uint64_t seed_;
  std::int64_t steps_;
  core::Position at_;
};

}  // namespace

std::unique_ptr<core::BatchSource> sample_source(SampleFunction sample, Split split, std::int64_t samples,
                                                 const BatchRequest& request) {
  return std::make_unique<SampleSource>(std::move(sample), split, samples, request);
}

}  // namespace stoker::tasks
