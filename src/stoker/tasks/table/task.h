// SPDX-License-Identifier: Apache-2.0
// A table with a plan's options, or with a trained model's card: trains and evaluates on its rows. Made by the kind of
// task. network: "hidden", "layers", "dropout", as on the card.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "stoker/tasks/table/data.h"
#include "stoker/tasks/table/encoding.h"
#include "stoker/tasks/table/model.h"
#include "stoker/tasks/table/options.h"

namespace stoker::tasks {

// network: "hidden", "layers", "dropout", as the card has them.
[[nodiscard]] std::unique_ptr<ReadyTask> ready_table(TableFiles files, TableTaskOptions options, TableEncoding encoding,
                                                     nlohmann::json network);

// The network for an encoding.
[[nodiscard]] std::unique_ptr<Model> make_table_model(const ModelRequest& request, const TableEncoding& encoding,
                                                      const nlohmann::json& network, TableModelOptions options);

}  // namespace stoker::tasks
