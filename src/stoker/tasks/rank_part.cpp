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
    if (!whole_) {
      whole_ = source_->next();
    }
    if (!whole_) {
      return std::nullopt;
    }
    core::Batch part = whole_->slice(rank_ * whole_->size() / ranks_, (rank_ + 1) * whole_->size() / ranks_);
    whole_.reset();
    return part;
  }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return source_->figures(); }

 private:
  std::unique_ptr<core::BatchSource> source_;
  std::int64_t rank_, ranks_;
  std::optional<core::Batch> whole_;  // requested, not yet cut: without memory for the part it is kept
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
