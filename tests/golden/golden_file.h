// SPDX-License-Identifier: Apache-2.0
// Reads a golden file (.safetensors, written by golden_file.py) and compares tensors with it, relative to the golden's
// largest magnitude. Used by the tests in this folder.
#pragma once

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "golden/draws.h"
#include "stoker/io/safetensors.h"

namespace stoker::golden {

// The largest allowed difference for float64 and float32 results.
inline double tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-12 : 1e-5; }

inline std::filesystem::path folder() {
  const char* source = std::getenv("STOKER_SOURCE");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests" / "golden";
}

class GoldenFile {
 public:
  explicit GoldenFile(const char* name) : file_(io::read_safetensors(folder() / name)) {}
  [[nodiscard]] const at::Tensor& operator[](const std::string& name) const { return file_.tensors.at(name); }
  [[nodiscard]] const std::string& text(const std::string& name) const { return file_.metadata.at(name); }

 private:
  io::Safetensors file_;
};

// Compares a whole tensor.
inline void expect_near(const at::Tensor& ours, const at::Tensor& golden, double tolerance, const std::string& name) {
  ASSERT_EQ(ours.sizes(), golden.sizes()) << name;
  const double error = (ours.detach().to(at::kDouble) - golden).abs().max().item<double>();
  const double largest = golden.abs().max().item<double>();
  EXPECT_TRUE(error <= tolerance * largest) << name << ": " << error / largest << " of the largest";
}

// Compares a tensor with a golden that is draws.py's sample() of it.
inline void expect_sample(const at::Tensor& ours, const at::Tensor& golden, double tolerance, const std::string& name) {
  const at::Tensor error = (sample(name, ours) - golden).abs();
  EXPECT_TRUE(error[0].item<double>() <= tolerance * golden[0].item<double>()) << name << ": its norm";
  const double worst = error.slice(0, 1).max().item<double>();
  const double largest = golden[1].item<double>();
  EXPECT_TRUE(worst <= tolerance * largest) << name << ": " << worst / largest << " of the largest";
}

}  // namespace stoker::golden
