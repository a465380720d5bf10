// SPDX-License-Identifier: Apache-2.0
// A JSON value for headers that do not include the JSON library. Used by Checkpoint. A value: copy it freely.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace stoker::io {

class JsonBox {
 public:
  JsonBox();  // null
  JsonBox(nlohmann::json value);
  JsonBox(const JsonBox& other);
  JsonBox(JsonBox&& other) noexcept;
  JsonBox& operator=(JsonBox other) noexcept;
  ~JsonBox();

  [[nodiscard]] const nlohmann::json& operator*() const { return *value_; }
  [[nodiscard]] operator const nlohmann::json&() const { return *value_; }

 private:
  std::unique_ptr<nlohmann::json> value_;  // only empty after a move
};

}  // namespace stoker::io
