// SPDX-License-Identifier: Apache-2.0
// Generates text with a trained model. Used by `stoker generate`; one thread at a time.
#pragma once

#include <functional>
#include <string_view>

#include "stoker/job/loaded_model.h"

namespace stoker::job {

// Passes the text after the prompt to take, piece by piece, until take returns false. ConfigError for a model that does
// not generate text, DataError for a prompt that it cannot read.
void generate(LoadedModel& loaded, const tasks::GenerateRequest& request,
              const std::function<bool(std::string_view)>& take);

}  // namespace stoker::job
