// SPDX-License-Identifier: Apache-2.0
// The stages of a pipeline compute the gradients of the plain chain in the same microbatches, also over real messages
// between threads, and end together if memory runs out or a stage fails.
#include "stoker/train/pipeline_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>

#include "stoker/base/error.h"
#include "stoker/train/step.h"
#include "support/fault_allocator.h"
#include "support/gloo_ranks.h"
#include "support/lockstep_ranks.h"
#include "support/pipeline_chain.h"

namespace stoker::train {
namespace {

using stoker::testing::LockstepRanks;
using stoker::testing::PipelineChain;
using stoker::testing::run_over_gloo;
using stoker::testing::toy_batch;
using ::testing::HasSubstr;
using Gradients = std::map<std::string, at::Tensor>;
using Cut = std::vector<int>;  // where stages begin, and the end

constexpr std::uint64_t kSeed = 7;

Gradients gradients_of(const core::Trainable& model) {
  Gradients gradients;
  for (const core::Parameter& each : model.parameters()) {
    if (each.tensor.grad().defined()) {
      gradients[each.name] = each.tensor.grad().clone();
    }
  }
  return gradients;
}

void drop_gradients(const core::Trainable& model) {
  for (const core::Parameter& each : model.parameters()) {
    each.tensor.mutable_grad() = at::Tensor();
  }
}

class Passes final : public memory::BatchSplit {
 public:
  explicit Passes(std::int64_t passes) : passes_(passes) {}
  [[nodiscard]] std::int64_t passes(std::int64_t) const override { return passes_; }
  void ran_out(const std::exception&, std::int64_t, bool) override { throw; }

 private:
  std::int64_t passes_;
};

// Of one process.
Gradients plain(core::Trainable& model, const core::Batch& batch, std::int64_t number, std::int64_t passes) {
  Step step(model, {.name = "sgd"}, {.seed = kSeed});
  Passes split(passes);
  step.compute(batch, number, split);
  return gradients_of(model);
}

// One stage and its messages.
class Stage {
 public:
  Stage(core::Trainable& model, core::Communicator& ranks, const Cut& cut,
        const memory::RecomputeChoice& recompute = {})
      : model_(model),
        recompute_(model, recompute),
        passes_(model, ranks, recompute_,
                {.first = at(cut, ranks.rank()), .last = at(cut, ranks.rank() + 1), .seed = kSeed}) {}

  at::Tensor run(const core::Batch& batch, std::int64_t number, std::int64_t passes) {
    return run(batch, number, passes, model_.normalisers(batch));
  }
  at::Tensor run(const core::Batch& batch, std::int64_t number, std::int64_t passes,
                 const core::Normalisers& normalisers) {
    drop_gradients(model_);
    return passes_.run({.batch = batch, .number = number, .passes = passes, .normalisers = normalisers});
  }
  [[nodiscard]] bool whole() const { return passes_.whole(); }

 private:
  static int at(const Cut& cut, int stage) { return cut[static_cast<std::size_t>(stage)]; }

  core::Trainable& model_;
  memory::RecomputePlan recompute_;
  PipelinePasses passes_;
};

Cut random_cut(std::mt19937& draw, int stages) {
  std::vector<int> inner{1, 2, 3, 4, 5};
  std::ranges::shuffle(inner, draw);
  Cut cut(inner.begin(), inner.begin() + stages - 1);
  cut.insert(cut.end(), {0, 6});
  std::ranges::sort(cut);
  return cut;
}

// Those of this stage, and no others.
void expect_own(const core::Trainable& model, const Cut& cut, int stage, const Gradients& expected) {
  for (const core::Parameter& each : model.parameters()) {
    const int segment = each.segments.front();
    const bool own =
        segment >= cut[static_cast<std::size_t>(stage)] && segment < cut[static_cast<std::size_t>(stage) + 1];
    ASSERT_EQ(each.tensor.grad().defined(), own && expected.contains(each.name)) << each.name;
    if (each.tensor.grad().defined()) {
      EXPECT_LE((each.tensor.grad() - expected.at(each.name)).abs().max().item<double>(), 1e-12) << each.name;
    }
  }
}

struct Case {
  std::int64_t size, passes;
};

// Steps of different sizes one after the other: shapes come back, and are agreed once.
void expect_gradients_of_chain(core::Communicator& ranks, const Cut& cut, const std::vector<Case>& cases, bool drops,
                               const std::vector<Gradients>& expected, const memory::RecomputeChoice& recompute = {}) {
  PipelineChain model(drops);
  Stage stage(model, ranks, cut, recompute);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const at::Tensor loss = stage.run(toy_batch(cases[i].size, at::kDouble, 31 * number), number, cases[i].passes);
    EXPECT_EQ(loss.defined(), cases[i].size > 0 && ranks.rank() + 1 == ranks.size());
    EXPECT_TRUE(stage.whole());
    expect_own(model, cut, ranks.rank(), expected[i]);
  }
}

std::vector<Gradients> expected_of(const std::vector<Case>& cases, bool drops) {
  std::vector<Gradients> expected;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    PipelineChain model(drops);
    const auto number = static_cast<std::int64_t>(i);
    expected.push_back(cases[i].size == 0
                           ? Gradients()
                           : plain(model, toy_batch(cases[i].size, at::kDouble, 31 * number), number, cases[i].passes));
  }
  return expected;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases{{3, 1}, {0, 1}};
  for (std::int64_t passes = 1; passes <= 8; ++passes) {
    cases.push_back({13, passes});  // uneven
    cases.push_back({8, passes});
  }
  return cases;
}

TEST(PipelinePasses, GiveTheGradientsOfTheChain) {
  const std::vector<Case> cases = all_cases();
  const std::vector<Gradients> expected = expected_of(cases, true);
  std::mt19937 draw(3);
  for (const int stages : {1, 2, 3, 4}) {
    for (int round = 0; round < (stages == 1 ? 1 : 5); ++round) {
      const Cut cut = random_cut(draw, stages);
      SCOPED_TRACE(::testing::PrintToString(cut));
      LockstepRanks(stages).run(
          [&](core::Communicator& ranks) { expect_gradients_of_chain(ranks, cut, cases, true, expected); });
    }
  }
}

TEST(PipelinePasses, DrawOtherNumbersForOtherCutsOfTheBatch) {
  const std::vector<Gradients> found = expected_of({{13, 2}, {13, 2}}, true);
  const std::vector<Gradients> other = expected_of({{13, 3}, {13, 3}}, true);
  EXPECT_GT((found[0].at("hidden.weight") - other[0].at("hidden.weight")).abs().max().item<double>(), 1e-6)
      << "the tests above cannot see dropout";
}

TEST(PipelinePasses, RecomputeSegments) {
  const std::vector<Case> cases{{13, 4}, {8, 3}};
  const std::vector<Gradients> expected = expected_of(cases, true);
  LockstepRanks(3).run([&](core::Communicator& ranks) {
    expect_gradients_of_chain(ranks, {0, 1, 3, 6}, cases, true, expected,
                              memory::parse_recompute("layer0,layer1,layer3"));
  });
}

// Nothing comes back to a stage whose outputs take no gradients.
TEST(PipelinePasses, FrozenSegmentsGetNone) {
  const auto frozen = [] {
    auto model = std::make_unique<PipelineChain>();
    for (const core::Parameter& each : model->parameters()) {
      each.tensor.set_requires_grad(each.segments.front() > 1);
    }
    return model;
  };
  const core::Batch batch = toy_batch(13);
  const auto whole = frozen();
  const Gradients expected = plain(*whole, batch, 0, 4);
  ASSERT_EQ(expected.size(), 3);
  for (const Cut& cut : {Cut{0, 2, 3, 6}, Cut{0, 1, 4, 6}}) {
    LockstepRanks(3).run([&](core::Communicator& ranks) {
      const auto model = frozen();
      (void)Stage(*model, ranks, cut).run(batch, 0, 4);
      expect_own(*model, cut, ranks.rank(), expected);
    });
  }
}

TEST(PipelinePasses, TheLossIsThatOfTheChain) {
  const core::Batch batch = toy_batch(13);
  at::Tensor whole, in_stages;
  LockstepRanks(1).run([&](core::Communicator& ranks) {
    PipelineChain model;
    whole = Stage(model, ranks, {0, 6}).run(batch, 0, 5);
  });
  LockstepRanks(3).run([&](core::Communicator& ranks) {
    PipelineChain model;
    const at::Tensor loss = Stage(model, ranks, {0, 1, 4, 6}).run(batch, 0, 5);
    in_stages = ranks.rank() == 2 ? loss : in_stages;
  });
  EXPECT_TRUE(at::allclose(whole, in_stages, 1e-12, 1e-12));
}

// Every allocation of a tensor fails once, on whichever stage makes it. All stages come to the end and drop the step;
// the next try gives the same gradients.
TEST(PipelinePasses, SurviveEachAllocationThatFails) {
  const Cut cut{0, 1, 3, 6};
  const core::Batch batch = toy_batch(13);
  PipelineChain whole;
  const Gradients expected = plain(whole, batch, 0, 4);
  stoker::testing::FaultAllocator memory;
  const auto survive = [&](std::int64_t k) {
    std::atomic<int> failed = 0, first_tries = 0;
    std::atomic<bool> dropped = false, done = false;  // done: there are not as many allocations
    LockstepRanks(3).run([&](core::Communicator& ranks) {
      PipelineChain model;
      Stage stage(model, ranks, cut);
      const core::Normalisers normalisers = model.normalisers(batch);
      for (int attempt = 0; attempt < 2; ++attempt) {
        ranks.barrier();
        if (attempt == 0 && first_tries++ == 0) {
          memory.fail_at(k);
        }
        try {
          (void)stage.run(batch, 0, 4, normalisers);
          dropped = dropped || (attempt == 0 && !stage.whole());
        } catch (const c10::OutOfMemoryError&) {
          ++failed;
        }
        ranks.barrier();
        done = done || (attempt == 0 && memory.armed());
        ranks.barrier();
        memory.fail_at(0);
        if (failed == 0) {
          break;
        }
      }
      expect_own(model, cut, ranks.rank(), expected);
      EXPECT_TRUE(stage.whole());
    });
    EXPECT_LE(failed, 1) << "allocation " << k;
    return std::tuple(failed > 0, dropped.load(), done.load());
  };
  int failures = 0, told = 0;
  std::int64_t k = 1;
  for (bool end = false; !end; ++k) {
    const auto [failed, dropped, done] = survive(k);
    failures += failed ? 1 : 0;
    told += dropped ? 1 : 0;
    end = done;
  }
  EXPECT_GT(k, 200);
  EXPECT_GT(failures, k / 2);
  EXPECT_GT(told, 50) << "no stage heard of it in time";
}

TEST(PipelinePasses, AStageMustBeAPartOfTheChain) {
  LockstepRanks(2).run([&](core::Communicator& ranks) {
    PipelineChain model;
    const memory::RecomputePlan recompute;
    const PipelineOptions wrong{.first = ranks.rank() * 3, .last = ranks.rank() * 3 + 2};
    EXPECT_EQ(ranks.rank() == 1, [&] {
      try {
        PipelinePasses passes(model, ranks, recompute, wrong);
        return false;
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("stage 2 of 2 cannot be segments 3 to 4 of 6"));
        return true;
      }
    }());
  });
}

TEST(PipelinePasses, GiveTheGradientsOfTheChainOverGloo) {
  const std::vector<Case> cases = all_cases();
  const std::vector<Gradients> expected = expected_of(cases, false);
  std::mt19937 draw(4);
  for (const int stages : {2, 3, 4}) {
    const Cut cut = random_cut(draw, stages);
    const auto errors = run_over_gloo(
        stages, [&](core::Communicator& ranks) { expect_gradients_of_chain(ranks, cut, cases, false, expected); });
    EXPECT_THAT(errors, ::testing::Each("")) << stages;
  }
}

// Two pipelines beside each other, as parts of one group.
TEST(PipelinePasses, RunInPartsOfAGroup) {
  const std::vector<Case> cases{{13, 4}, {8, 8}};
  const std::vector<Gradients> expected = expected_of(cases, false);
  const auto errors = run_over_gloo(4, [&](core::Communicator& ranks) {
    const auto stages = ranks.split(ranks.rank() / 2);
    expect_gradients_of_chain(*stages, {0, 2 + ranks.rank() / 2, 6}, cases, false, expected);
  });
  EXPECT_THAT(errors, ::testing::Each(""));
}

TEST(PipelinePasses, AnErrorOfOneStageEndsAll) {
  for (const int bad : {0, 1, 2}) {
    const auto errors = run_over_gloo(3, [&](core::Communicator& ranks) {
      PipelineChain model(false);
      int passes = 0;
      model.on_forward = [&](int segment) {
        if (ranks.rank() == bad && segment % 2 == 0 && ++passes == 4) {
          fail<DataError>("here", "a bad value");
        }
      };
      Stage stage(model, ranks, {0, 2, 4, 6});
      (void)stage.run(toy_batch(13), 0, 6);
      ranks.barrier();
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(
          errors[static_cast<std::size_t>(rank)],
          HasSubstr(rank == bad ? "[here] a bad value" : fmt::format("rank {} failed: [here] a bad value", bad)));
    }
  }
}

// Another shape for the same batch would be a message of another size, at which torch ends the process.
TEST(PipelinePasses, ShapesThatDependOnValuesAreRefused) {
  const auto errors = run_over_gloo(2, [&](core::Communicator& ranks) {
    class Growing final : public PipelineChain {
     public:
      Growing() : PipelineChain(false) {}
      [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override {
        core::TensorList list = PipelineChain::inputs(batch);
        list[1] = batch.first_row() > 0 ? list[1].to(at::kInt) : list[1];
        return list;
      }
    } model;
    (void)Stage(model, ranks, {0, 2, 6}).run(toy_batch(8), 0, 4);
  });
  EXPECT_THAT(errors[0], HasSubstr("shapes may depend on those of the batch only"));
  EXPECT_THAT(errors[0], HasSubstr("int32 [2]"));
  EXPECT_THAT(errors[1], HasSubstr("rank 0 failed: "));
}

}  // namespace
}  // namespace stoker::train
