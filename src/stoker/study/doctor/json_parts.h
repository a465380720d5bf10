// SPDX-License-Identifier: Apache-2.0
// The contents of diagnosis_json(). Used by json.cpp, trials_text.cpp and page.cpp. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "stoker/study/doctor/report.h"

namespace stoker::study {

[[nodiscard]] nlohmann::ordered_json diagnosis_object(const Examined& examined);

}  // namespace stoker::study
