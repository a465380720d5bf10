// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/json_box.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace stoker::io {

JsonBox::JsonBox() : value_(std::make_unique<nlohmann::json>()) {}
JsonBox::JsonBox(nlohmann::json value) : value_(std::make_unique<nlohmann::json>(std::move(value))) {}
JsonBox::JsonBox(const JsonBox& other) : value_(std::make_unique<nlohmann::json>(*other.value_)) {}
JsonBox::JsonBox(JsonBox&& other) noexcept = default;
JsonBox& JsonBox::operator=(JsonBox other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
JsonBox::~JsonBox() = default;

}  // namespace stoker::io
