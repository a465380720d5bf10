// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips_report.h"

namespace stoker::study {

std::string tips_page(const TipsTable& table) { return tips_json(table); }

}  // namespace stoker::study
