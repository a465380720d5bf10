// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/generate.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/tasks/registry.h"

namespace stoker::job {

void generate(LoadedModel& loaded, const tasks::GenerateRequest& request,
              const std::function<bool(std::string_view)>& take) {
  const tasks::TaskKind& kind = tasks::task_kind(loaded.card.task);
  if (!kind.writes_text()) {
    fail<ConfigError>("job.generate", "{}: is a model for {}, which cannot generate text",
                      printable(loaded.checkpoint.native()), loaded.card.task);
  }
  const auto& model = loaded.model;
  read_card(loaded.checkpoint, [&] { kind.generate(*model, loaded.info, request, take); });
}

}  // namespace stoker::job
