// SPDX-License-Identifier: Apache-2.0
// One evaluation of a split after another, by one loader that stays in between and rests. Made by Job for the
// validation of a run, after what listens to its sources. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"

namespace stoker::job {

class SplitEvaluation {
 public:
  SplitEvaluation(const Setup& setup, Session& session, tasks::Split split)
      : setup_(setup), session_(session), split_(split) {}

  // Session::evaluate(). After one that was given up, or threw, the next begins with a loader of its own.
  [[nodiscard]] std::vector<core::MetricValue> run(train::EvaluationWatch watch);

 private:
  const Setup& setup_;
  Session& session_;
  tasks::Split split_;
  std::unique_ptr<core::BatchSource> source_;  // at the beginning of an epoch; null: none yet
};

}  // namespace stoker::job
