// SPDX-License-Identifier: Apache-2.0
// A text before there is a plan, and what both of its phases share: its tokens, split into training and validation.
// Used by the kind of task.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/data/text/text_files.h"
#include "stoker/data/text/tokenizer.h"
#include "stoker/models/gpt.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

struct TextFiles {
  std::filesystem::path path;
  bool cuda = false;
  data::Text text;
  std::size_t train_bytes = 0;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  at::Tensor train, val;       // int32 tokens; val undefined: no validation split
  models::GptOptions network;  // with its vocabulary
  std::vector<std::string> findings;

  // Splits the text into tokens, and the end off for validation. An end without a token to predict counts as none.
  void cut(std::shared_ptr<const data::Tokenizer> with);
  [[nodiscard]] const at::Tensor& of(Split split) const;
  [[nodiscard]] std::int64_t size(Split split) const;  // windows
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string details() const;
};

// The part of a phase that depends on the files.
template <typename Phase>
class WithText : public Phase {
 public:
  explicit WithText(TextFiles files) : files_(std::move(files)) {}
  [[nodiscard]] std::int64_t size(Split split) const final { return files_.size(split); }
  [[nodiscard]] std::string describe() const final { return files_.describe(); }
  [[nodiscard]] std::string details() const final { return files_.details(); }
  [[nodiscard]] const std::vector<std::string>& findings() const final { return files_.findings; }

 protected:
  TextFiles files_;
};

// DataError if it is not text.
[[nodiscard]] std::unique_ptr<OpenData> open_text(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace stoker::tasks
