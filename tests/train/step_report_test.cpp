// SPDX-License-Identifier: Apache-2.0
// What a step reports, computed on the host and by the operators of a GPU: the same.
#include "stoker/train/step_report.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "stoker/core/host_value.h"

namespace stoker::train {
namespace {

struct Row {
  at::Tensor found_inf, skipped, scalars;
};

TEST(StepReport, TheHostSaysWhatTheOperatorsSay) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& parts : std::vector<std::vector<double>>{
           {1.5}, {1.5, -0.25, 3}, {kNan}, {1, kInf}, {kInf, -kInf}, {1e39}, {1e38, 1e38, 1e38, 1e38}, {}}) {
    for (const float found : {0.0F, 1.0F}) {
      for (const bool norm : {false, true}) {
        for (const bool scale : {false, true}) {
          const at::Tensor loss_parts = at::tensor(parts, at::kDouble);
          const StepValues values{loss_parts, norm ? at::full({}, 2.5F) : at::Tensor(),
                                  scale ? at::full({}, 512.0F) : at::Tensor()};
          const auto terms = static_cast<std::int64_t>(parts.size());
          const std::int64_t columns = 2 + (terms > 1 ? terms : 0) + (norm ? 1 : 0) + (scale ? 1 : 0);
          const auto make = [&] { return Row{at::full({1}, found), at::full({1}, 3.0F), at::zeros({columns})}; };
          Row host = make(), twin = make();
          judge_and_report(values, host.found_inf, host.skipped, host.scalars);
          {
            const core::OperatorsOnly as_on_a_gpu;
            judge_and_report(values, twin.found_inf, twin.skipped, twin.scalars);
          }
          EXPECT_EQ(host.found_inf.item<float>(), twin.found_inf.item<float>());
          EXPECT_EQ(host.skipped.item<float>(), twin.skipped.item<float>());
          EXPECT_TRUE(at::allclose(host.scalars, twin.scalars, 1e-6, 0, /*equal_nan=*/true))
              << host.scalars << twin.scalars;
        }
      }
    }
  }
}

TEST(StepReport, CountsStepsInARow) {
  const at::Tensor good = at::full({1}, 1.0, at::kDouble), bad = at::full({1}, NAN, at::kDouble);
  at::Tensor found_inf = at::zeros({1}), skipped = at::zeros({1}), scalars = at::zeros({2});
  for (const auto& [parts, expected] : {std::pair{bad, 1}, {bad, 2}, {good, 0}, {bad, 1}}) {
    found_inf.zero_();
    judge_and_report({parts, {}, {}}, found_inf, skipped, scalars);
    EXPECT_EQ(scalars[1].item<float>(), expected);
  }
}

}  // namespace
}  // namespace stoker::train
