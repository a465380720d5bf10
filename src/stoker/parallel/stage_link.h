// SPDX-License-Identifier: Apache-2.0
// The two directions between neighbouring stages of a pipeline: lists of tensors go on, and the gradients of those that
// take one come back, in the same order. Each is one message. A stage that has no values, because memory ran out, sends
// a message of the same size that says so. Used by train::PipelinePasses; one thread.
//
// Functions that run out of memory have sent and received nothing, so they can be called again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/trainable.h"
#include "stoker/parallel/tensor_pack.h"

namespace stoker::parallel {

// Forms of lists by a key that both sides know. The first list with a key is preceded by its form.
class AgreedForms {
 public:
  using Form = std::shared_ptr<const ListForm>;
  [[nodiscard]] Form find(std::uint64_t key) const;
  // Forgets all others when there are many; both sides do so at the same list.
  void add(std::uint64_t key, Form form);

 private:
  std::map<std::uint64_t, Form> forms_;
};

// To the next stage.
class LinkAhead {
 public:
  // stages outlives it.
  LinkAhead(core::Communicator& stages, int next) : stages_(stages), next_(next) {}
  // key: of all that the form of the list depends on. list: null: there are no values. ConfigError if the form is not
  // that of the list before with this key.
  void send(std::uint64_t key, const core::TensorList* list);
  // Gradients of the oldest list without them: for each of its tensors, undefined for those that take none. Empty:
  // there are no values.
  [[nodiscard]] std::optional<core::TensorList> receive_gradients();
  // Of lists that are sent and have no gradients yet.
  [[nodiscard]] std::size_t waiting() const { return sent_.size(); }

 private:
  struct Sent {
    AgreedForms::Form form;  // null: none was agreed, so no gradients come
    std::vector<std::unique_ptr<core::Communicator::Pending>> messages;
  };
  core::Communicator& stages_;
  int next_;
  AgreedForms forms_;
  std::deque<Sent> sent_;
};

// To the stage before.
class LinkBack {
 public:
  // stages outlives it.
  LinkBack(core::Communicator& stages, int before) : stages_(stages), before_(before) {}
  // Starts to receive the next list beside other work, if its form is known; so its bytes come meanwhile.
  void expect(std::uint64_t key);
  // The next list, without gradients; takes_gradient() tells who will want one. Empty: there are no values.
  [[nodiscard]] std::optional<core::TensorList> receive(std::uint64_t key);
  // Of the list that came last: null if it had no form.
  [[nodiscard]] const AgreedForms::Form& form() const { return received_.back(); }
  // Gradients of the oldest list that has none, for those of its tensors that take one; null: there are no values.
  void send_gradients(const core::TensorList* gradients);
  // Returns when the gradients have arrived.
  void finish();

 private:
  [[nodiscard]] bool agree(std::uint64_t key);

  core::Communicator& stages_;
  int before_;
  AgreedForms forms_;
  std::optional<std::int64_t> announced_;  // numbers of a form that comes next
  at::Tensor expected_;                    // pack; undefined: nothing was started
  std::unique_ptr<core::Communicator::Pending> expecting_;
  std::deque<AgreedForms::Form> received_;  // of lists whose gradients have not been sent
  std::deque<std::unique_ptr<core::Communicator::Pending>> sent_;
};

}  // namespace stoker::parallel
