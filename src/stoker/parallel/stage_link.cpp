// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/stage_link.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::parallel {
namespace {

constexpr std::size_t kMostForms = 64;

void wait_for(std::unique_ptr<core::Communicator::Pending> message) {
  if (message) {
    message->wait();
  }
}

bool takes_gradients(const AgreedForms::Form& form) { return form && !gradients_form(*form).empty(); }

std::string words(const ListForm& form) {
  std::vector<std::string> parts;
  for (const TensorForm& each : form) {
    parts.push_back(each.defined ? fmt::format("{} [{}]", core::dtype_name(each.type), fmt::join(each.sizes, ", "))
                                 : "none");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

AgreedForms::Form AgreedForms::find(std::uint64_t key) const {
  const auto found = forms_.find(key);
  return found == forms_.end() ? nullptr : found->second;
}

void AgreedForms::add(std::uint64_t key, Form form) {
  if (forms_.size() >= kMostForms) {
    forms_.clear();
  }
  forms_[key] = std::move(form);
}

// With a new key: how many numbers tell the form (negative: there is none, and no list comes), then these numbers.
void LinkAhead::send(std::uint64_t key, const core::TensorList* list) {
  AgreedForms::Form form = forms_.find(key);
  at::Tensor count, numbers;
  if (!form) {
    count = at::empty({1}, at::kLong);
    if (list != nullptr) {
      form = std::make_shared<const ListForm>(form_of(*list));
      numbers = to_numbers(*form);
    }
    *count.mutable_data_ptr<std::int64_t>() = list == nullptr ? -1 : numbers.numel();
  } else if (list != nullptr && form_of(*list) != *form) {
    fail<ConfigError>("parallel.pipeline",
                      "a stage hands on {}, but {} for an earlier microbatch of the same shape; where a model is cut, "
                      "shapes may depend on those of the batch only",
                      words(form_of(*list)), words(*form));
  }
  const at::Tensor message = form ? pack(*form, list) : at::Tensor();
  if (numbers.defined()) {
    forms_.add(key, form);
  }
  Sent& sent = sent_.emplace_back();
  sent.form = std::move(form);
  for (const at::Tensor& each : {count, numbers, message}) {
    if (each.defined()) {
      sent.messages.push_back(stages_.start_send(each, next_));
    }
  }
}

std::optional<core::TensorList> LinkAhead::receive_gradients() {
  const AgreedForms::Form form = sent_.front().form;
  std::optional<core::TensorList> list;
  if (!form) {
  } else if (!takes_gradients(form)) {
    list.emplace(form->size());
  } else {
    const ListForm gradients = gradients_form(*form);
    at::Tensor message = at::empty({pack_bytes(gradients)}, at::kByte);
    core::TensorList values = unpack(gradients, message);
    stages_.receive(message, next_);
    if (has_values(message)) {
      list.emplace();
      for (std::size_t i = 0, next = 0; i < form->size(); ++i) {
        list->push_back((*form)[i].takes_gradient ? std::move(values[next++]) : at::Tensor());
      }
    }
  }
  for (auto& each : sent_.front().messages) {  // have arrived
    wait_for(std::move(each));
  }
  sent_.pop_front();
  return list;
}

void LinkBack::expect(std::uint64_t key) {
  const AgreedForms::Form form = forms_.find(key);
  if (form && !expected_.defined()) {
    at::Tensor message = at::empty({pack_bytes(*form)}, at::kByte);
    expecting_ = stages_.start_receive(message, before_);
    expected_ = std::move(message);
  }
}

bool LinkBack::agree(std::uint64_t key) {
  if (!announced_) {
    at::Tensor count = at::empty({1}, at::kLong);
    stages_.receive(count, before_);
    announced_ = *count.const_data_ptr<std::int64_t>();
  }
  if (*announced_ < 0) {
    announced_.reset();
    return false;
  }
  at::Tensor numbers = at::empty({*announced_}, at::kLong);
  stages_.receive(numbers, before_);
  announced_.reset();
  forms_.add(key, std::make_shared<const ListForm>(from_numbers(numbers)));
  return true;
}

std::optional<core::TensorList> LinkBack::receive(std::uint64_t key) {
  if (!forms_.find(key) && !agree(key)) {
    received_.push_back(nullptr);
    return std::nullopt;
  }
  expect(key);
  const AgreedForms::Form form = forms_.find(key);
  core::TensorList list = unpack(*form, expected_);
  wait_for(std::move(expecting_));
  const bool values = has_values(std::exchange(expected_, {}));
  received_.push_back(form);
  return values ? std::optional(std::move(list)) : std::nullopt;
}

void LinkBack::send_gradients(const core::TensorList* gradients) {
  if (const AgreedForms::Form& form = received_.front(); takes_gradients(form)) {
    const at::Tensor message = pack(gradients_form(*form), gradients);
    while (sent_.size() > 1) {  // the one before the last is taken before the next list comes
      wait_for(std::move(sent_.front()));
      sent_.pop_front();
    }
    sent_.push_back(stages_.start_send(message, before_));
  }
  received_.pop_front();
}

void LinkBack::finish() {
  while (!sent_.empty()) {
    wait_for(std::move(sent_.front()));
    sent_.pop_front();
  }
}

}  // namespace stoker::parallel
