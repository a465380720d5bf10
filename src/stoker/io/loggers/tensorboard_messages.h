// SPDX-License-Identifier: Apache-2.0
// The protobuf messages of TensorBoard (event.proto, summary.proto and the hparams plugin) as bytes. Used by the
// TensorBoard sink. A Summary belongs to one thread; the functions have no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::io {

// A PNG file's bytes and size in pixels.
struct Png {
  std::string bytes;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// Named values of one step. Tags are UTF-8; TensorBoard groups them by the part before the first '/'. A tag always has
// the same kind of value. Times are seconds since 1970.
class Summary {
 public:
  void scalar(std::string_view tag, float value);
  void text(std::string_view tag, std::string_view markdown);
  // Shown side by side. At least one.
  void images(std::string_view tag, const std::vector<Png>& images);

  void histogram(std::string_view tag, const core::Histogram& histogram);

  // For the hparams plugin: the values of a session, numbers as numbers; the columns of its table, metrics by their
  // scalar tags; and the successful end of the session.
  void session_started(const std::vector<core::PlanRow>& plan, double time);
  void experiment(const std::vector<core::PlanRow>& plan, const std::vector<std::string>& metrics, double time);
  void session_succeeded(double time);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The first event of a file.
[[nodiscard]] std::string file_version_event(double time);
// Start of a session: discards everything from step on in earlier files.
[[nodiscard]] std::string session_start_event(double time, std::int64_t step);
[[nodiscard]] std::string summary_event(double time, std::int64_t step, const Summary& summary);

}  // namespace stoker::io
