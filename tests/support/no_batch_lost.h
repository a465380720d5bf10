// SPDX-License-Identifier: Apache-2.0
// A source of batches loses and repeats nothing when an allocation fails, whichever it is: next() throws the typed
// error and gives the same batch when it is called again. For programs that link failing_new.
#pragma once

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>

#include "stoker/core/batch_source.h"
#include "support/failing_new.h"
#include "support/fault_allocator.h"
#include "support/same_batch.h"

namespace stoker::testing {

using MakeSource = std::function<std::unique_ptr<core::BatchSource>()>;

// The results of `calls` calls. A call that runs out of memory is repeated; errors counts these.
inline Batches take_all(const MakeSource& make, int calls, int* errors = nullptr) {
  Batches batches;
  {
    const MayAllocate here;
    batches.reserve(static_cast<std::size_t>(calls));
  }
  std::unique_ptr<core::BatchSource> source;
  int failures = 0;
  while (static_cast<int>(batches.size()) < calls && failures < 10) {
    try {
      if (!source) {
        source = make();
      }
      batches.push_back(source->next());
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const c10::OutOfMemoryError&) {
      ++failures;
    }
  }
  if (errors != nullptr) {
    *errors += failures;
  }
  return batches;
}

inline void expect_same(const Batches& batches, const Batches& expected) {
  const MayAllocate here;
  ASSERT_EQ(batches.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(batches[i], expected[i]);
    if (batches[i] && expected[i]) {
      EXPECT_EQ(batches[i]->first_row(), expected[i]->first_row());
      EXPECT_EQ(batches[i]->global_size(), expected[i]->global_size());
    }
  }
}

// Fails every operator new in turn. Returns the number of failures that next() or `make` reported; others were met
// inside, for example by fewer batches ahead.
inline int loses_nothing_at_new(const MakeSource& make, int calls, Whose whose) {
  const Batches expected = take_all(make, calls);
  int errors = 0;
  const int failures = at_every_new(whose, [&] { expect_same(take_all(make, calls, &errors), expected); });
  EXPECT_GT(failures, 0) << "nothing was tested";
  EXPECT_LE(errors, failures) << "a failure was reported twice";
  return errors;
}

// Fails every allocation of a tensor in turn, on any thread. No failure is reported twice; one in a batch ahead of the
// last call is not reported.
inline void loses_nothing_at_tensors(const MakeSource& make, int calls) {
  const Batches expected = take_all(make, calls);
  int errors = 0;
  for (int k = 1;; ++k) {
    FaultAllocator allocator;
    allocator.fail_at(k);
    expect_same(take_all(make, calls, &errors), expected);
    if (allocator.armed()) {
      EXPECT_GT(k, 1) << "nothing was tested";
      EXPECT_GT(errors, 0);
      EXPECT_LE(errors, k - 1);
      return;
    }
  }
}

}  // namespace stoker::testing
