// SPDX-License-Identifier: Apache-2.0
// Evaluates a split several times, with one loader that stays idle in between. Made by Job for the validation of a run,
// after the listener of its sources. One thread at a time.
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

  // Session::evaluate(). After an evaluation that gave up or threw, the next one starts with a new loader.
  [[nodiscard]] std::vector<core::MetricValue> run(train::EvaluationWatch watch);

 private:
  const Setup& setup_;
  Session& session_;
  tasks::Split split_;
  std::unique_ptr<core::BatchSource> source_;  // at the beginning of an epoch; null: none yet
};

}  // namespace stoker::job
