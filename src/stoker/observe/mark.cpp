// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/mark.h"

#include <ATen/record_function.h>

#include <string>
#include <utility>

namespace stoker::observe {

struct Mark::Range {
  Range(at::StepCallbacks&& callbacks, std::string_view text) : name(text), function(std::move(callbacks)) {
    function.before(std::string_view(name));
  }
  std::string name;  // the function refers to it
  at::RecordFunction function;
};

Mark::Mark(std::string_view name) : book_(core::t_book) {
  if (book_ != nullptr) {
    place_ = book_->mark(name);
    began_ = book_->now();
  }
  if (auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE)) {
    range_ = std::make_unique<Range>(std::move(*callbacks), name);
  }
}

Mark::~Mark() {
  range_.reset();
  if (book_ != nullptr) {
    book_->add_mark(place_, book_->now() - began_);
  }
}

}  // namespace stoker::observe
