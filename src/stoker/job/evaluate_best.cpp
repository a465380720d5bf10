// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/evaluate_best.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/job/cell_json.h"
#include "stoker/job/loaded_model.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/evaluation_watch.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

tasks::Exhibit table_exhibit(const tasks::Table& table, const std::string& note) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& row : table.rows) {
    nlohmann::json cells = nlohmann::json::array();
    std::ranges::transform(row, std::back_inserter(cells), cell_json);
    rows.push_back(std::move(cells));
  }
  std::string title = table.name;
  title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  const nlohmann::json json = {
      {"kind", "table"}, {"title", title}, {"note", note}, {"columns", table.columns}, {"rows", rows}};
  return {table.name, title, json.dump(1), {}};
}

// The confusion matrix of totals, labelled with the first column of the table of classes.
tasks::Exhibit matrix_exhibit(const at::Tensor& confusion, const tasks::Table& classes, const std::string& note) {
  nlohmann::json values = nlohmann::json::array(), labels = nlohmann::json::array();
  const auto cells = confusion.accessor<std::int64_t, 2>();
  for (std::int64_t row = 0; row < confusion.size(0); ++row) {
    nlohmann::json line = nlohmann::json::array();
    for (std::int64_t column = 0; column < confusion.size(1); ++column) {
      line.push_back(cells[row][column]);
    }
    values.push_back(std::move(line));
    labels.push_back(cell_json(classes.rows[static_cast<std::size_t>(row)].front()));
  }
  const nlohmann::json json = {
      {"kind", "matrix"}, {"title", "Confusion"}, {"note", note}, {"labels", labels}, {"values", values}};
  return {"confusion", "Confusion", json.dump(), {}};
}

// What a model says about single samples.
struct Verdicts {
  std::vector<at::Tensor> values;
  std::vector<std::int64_t> indices;  // of their rows
};

std::vector<tasks::Exhibit> exhibits_of(const Setup& setup, tasks::Split split, const std::vector<tasks::Table>& tables,
                                        const std::vector<core::NamedTensor>& totals, const Verdicts& verdicts) {
  const std::string note = fmt::format("of the {} split, by the best checkpoint", tasks::split_name(split));
  std::vector<tasks::Exhibit> exhibits;
  for (const tasks::Table& table : tables) {
    exhibits.push_back(table_exhibit(table, note));
  }
  const auto confusion = std::ranges::find(totals, "confusion", &core::NamedTensor::name);
  if (confusion != totals.end() && !tables.empty()) {
    exhibits.push_back(matrix_exhibit(confusion->tensor, tables.front(), note));
  }
  if (!verdicts.values.empty()) {
    std::ranges::move(setup.task->exhibits(split, at::cat(verdicts.values).cpu(), verdicts.indices),
                      std::back_inserter(exhibits));
  }
  return exhibits;
}

// Into the run's own model: a second one might not fit beside the optimizer's state.
void put_best(tasks::Model& model, const std::string& name, const fs::path& run) {
  const fs::path checkpoint = find_checkpoint(run);
  put_weights(model, io::load_weights(checkpoint).weights, name, checkpoint);
}

}  // namespace

void write_exhibits(const std::vector<tasks::Exhibit>& exhibits, const fs::path& run, std::int64_t step,
                    core::EventEmitter& events) {
  const fs::path folder = run / "artifacts";
  try {
    fs::create_directories(folder);
    for (const tasks::Exhibit& exhibit : exhibits) {
      for (const auto& [name, bytes] : exhibit.files) {
        write_file_atomically(folder / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
      const std::string path = "artifacts/" + exhibit.name + ".json";
      write_file_atomically(run / path, exhibit.json);
      events.emit(core::Artifact{step, exhibit.title, path});
    }
  } catch (const IoError& error) {
    events.emit(core::Finding{fmt::format("not all artifacts of the run could be written: {}", error.what())});
  } catch (const fs::filesystem_error& error) {
    events.emit(
        core::Finding{fmt::format("the artifacts of the run could not be written: {}", error.code().message())});
  }
}

std::optional<std::vector<core::MetricValue>> evaluate_best(const fs::path& run, Setup& setup,
                                                            const train::Progress& progress, core::EventEmitter& events,
                                                            const std::function<bool()>& give_up) {
  const Stopwatch watch;
  const bool test = setup.task->size(tasks::Split::kTest) > 0;
  const tasks::Split split = test ? tasks::Split::kTest : tasks::Split::kVal;
  if (setup.task->size(split) == 0 || (!test && !setup.model->shows())) {
    return std::vector<core::MetricValue>();
  }
  train::Recovery recovery = setup.evaluation_recovery(&events);
  recovery.begin_step(progress.step);
  tasks::Model& model = *setup.model;
  const train::EvaluationMode mode(model);
  std::unique_ptr<core::BatchSource> source;
  recovery.between_steps("the loading of the best checkpoint", [&] {
    put_best(model, setup.plan.model, run);
    source = setup.evaluation_source(split);
  });
  Verdicts verdicts;
  const auto keep_verdict = [&](const core::TensorList& outputs, const core::Batch& batch) {
    if (at::Tensor verdict = model.verdicts(outputs, batch); verdict.defined()) {
      verdicts.values.push_back(std::move(verdict));
      verdicts.indices.insert(verdicts.indices.end(), batch.indices().begin(), batch.indices().end());
    }
  };
  train::EvaluationWatch looks_on(
      events, {progress.step, std::string(tasks::split_name(split)), 0, setup.task->size(split)}, give_up);
  const auto totals =
      train::sum_over_ranks(train::evaluate(model, *source, setup.autocast_dtype(),
                                            {.visit = keep_verdict, .go_on = std::ref(looks_on), .split = &recovery}),
                            *setup.ranks);
  if (totals.empty()) {
    return std::nullopt;
  }
  std::vector<core::MetricValue> metrics;
  std::vector<tasks::Exhibit> exhibits;
  recovery.between_steps("the results of the best checkpoint", [&] {
    metrics = test ? model.metrics(totals) : std::vector<core::MetricValue>();
    exhibits = exhibits_of(setup, split, model.tables(totals), totals, verdicts);
  });
  if (test) {
    events.emit(core::Evaluated{.position = progress.position,
                                .step = progress.step,
                                .split = "test",
                                .metrics = metrics,
                                .seconds = watch.seconds()});
  }
  if (setup.ranks->rank() == 0) {
    write_exhibits(exhibits, run, progress.step, events);
  }
  return metrics;
}

}  // namespace stoker::job
