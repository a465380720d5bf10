// SPDX-License-Identifier: Apache-2.0
// The page of the report: page.html in the frame of every page, with the chart library and the data of one or several
// runs. Used by the report. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace stoker::io {

// title and verdict are inserted as text, data as JSON that cannot end its script element.
[[nodiscard]] std::string report_page(std::string_view title, std::string_view verdict,
                                      const nlohmann::ordered_json& data);

}  // namespace stoker::io
