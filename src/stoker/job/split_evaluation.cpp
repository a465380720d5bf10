// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/split_evaluation.h"

#include <utility>

namespace stoker::job {

std::vector<core::MetricValue> SplitEvaluation::run(train::EvaluationWatch watch) {
  auto source =
      source_ ? std::move(source_) : setup_.evaluation_source(split_);  // dropped unless the evaluation succeeds
  auto metrics = session_.evaluate(*source, std::move(watch));
  if (!metrics.empty()) {
    source_ = std::move(source);
  }
  return metrics;
}

}  // namespace stoker::job
