// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/rank_part.h"

#include <utility>

namespace stoker::tasks {
namespace {

class RankPart final : public core::BatchSource {
 public:
  RankPart(std::unique_ptr<core::BatchSource> source, int rank, int ranks)
      : source_(std::move(source)), rank_(rank), ranks_(ranks) {}

  [[nodiscard]] std::optional<core::Batch> next() override {
    const std::optional<core::Batch> batch = source_->next();
    if (!batch) {
      return std::nullopt;
    }
    return batch->slice(rank_ * batch->size() / ranks_, (rank_ + 1) * batch->size() / ranks_);
  }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return source_->figures(); }

 private:
  std::unique_ptr<core::BatchSource> source_;
  std::int64_t rank_, ranks_;
};

}  // namespace

std::unique_ptr<core::BatchSource> rank_part(std::unique_ptr<core::BatchSource> source, const BatchRequest& request) {
  return request.ranks == 1 ? std::move(source)
                            : std::make_unique<RankPart>(std::move(source), request.rank, request.ranks);
}

BatchRequest whole_batches(BatchRequest request) {
  request.rank = 0;
  request.ranks = 1;
  return request;
}

}  // namespace stoker::tasks
