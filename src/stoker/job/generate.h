// SPDX-License-Identifier: Apache-2.0
// Text that a trained model writes. Used by `stoker generate`; one thread at a time.
#pragma once

#include <functional>
#include <string_view>

#include "stoker/job/loaded_model.h"

namespace stoker::job {

// Hands what follows the prompt to take, piece by piece, until it says false. ConfigError for a model that writes
// nothing, DataError for a prompt that it cannot read.
void generate(LoadedModel& loaded, const tasks::GenerateRequest& request,
              const std::function<bool(std::string_view)>& take);

}  // namespace stoker::job
