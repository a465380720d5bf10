// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/info.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/placement.h"
#include "stoker/device/process_facts.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/options_text.h"
#include "stoker/job/process.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/saved_plan.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/resolve.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t start = 0; start < lines.size();) {
    const std::size_t end = lines.find('\n', start);
    text += "  " + lines.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return text;
}

std::string checkpoint_info(const fs::path& folder) {
  const nlohmann::json info = io::load_info(folder);
  const ModelCard card = card_from_json(info, folder);
  const io::SafetensorsHeader header = io::peek_safetensors(folder / "weights.safetensors");
  std::string text =
      fmt::format("checkpoint {}\n  {} at step {} (epoch {}), trained in {} for {}\n", printable(folder.native()),
                  card.model, card.step, card.epoch, card.precision, card.task);
  if (!std::isnan(card.metric_value)) {
    text += fmt::format("  {} {:.4f} on validation\n", card.metric, card.metric_value);
  }
  text += fmt::format("  {} tensors, {:.2f} MB\n", header.entries.size(), static_cast<double>(header.file_bytes) / 1e6);
  read_card(folder, [&] { text += indented(tasks::task_kind(card.task).describe_card(info)); });
  return text;
}

std::string run_info(const fs::path& path) {
  const RunFolder run = RunFolder::open(path);
  std::string text = fmt::format("run {}\n", printable(path.native()));
  const io::CheckpointStore store(run.checkpoints());
  for (const char* name : {"best", "last"}) {
    if (store.has(name)) {
      text += checkpoint_info(store.path(name));
    }
  }
  return text + "plan (* is not a default)\n" + plan_table(read_plan(run.plan()));
}

// How far a run is, or why its last checkpoint cannot be read.
std::string state_of(const RunFolder& run) {
  try {
    const io::CheckpointStore store(run.checkpoints());
    if (!store.has("last")) {
      return "no checkpoint yet";
    }
    const ModelCard card = card_from_json(io::load_info(store.path("last")), store.path("last"));
    return fmt::format("{} at step {} (epoch {})", card.model, card.step, card.epoch);
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

std::string runs_info(const fs::path& path, const std::vector<std::string>& runs) {
  std::string text = fmt::format("{} runs in {}; `stoker info RUN` shows one, `stoker report RUN RUN` compares them\n",
                                 runs.size(), printable(path.native()));
  for (const std::string& name : runs) {
    const fs::path run = path / name;
    text += fmt::format("  {}: {}\n", printable(run.native()), state_of(RunFolder::open(run)));
  }
  return text;
}

std::string weights_info(const fs::path& path) {
  const io::SafetensorsHeader header = io::peek_safetensors(path);
  std::string text = fmt::format("safetensors {}: {} tensors, {:.2f} MB\n", printable(path.native()),
                                 header.entries.size(), static_cast<double>(header.file_bytes) / 1e6);
  for (const auto& [key, value] : header.metadata) {
    text += fmt::format("  {}: {}\n", printable(key), printable(value));
  }
  for (const io::SafetensorsEntry& entry : header.entries) {
    text += fmt::format("  {:<44} {:<5} [{}]\n", printable(entry.name), entry.dtype, fmt::join(entry.shape, ", "));
  }
  return text;
}

std::string data_info(const fs::path& path) {
  const tasks::TaskKind& kind = tasks::recognise_task(path);
  const train::Plan defaults = train::default_plan();
  tasks::OpenOptions options;
  options.val = defaults.val;
  options.seed = static_cast<std::uint64_t>(defaults.seed);
  const auto task = kind.open(path, options);
  std::string text = fmt::format("data {}: {}\n  train {}, val {}, test {}; for {}\n", printable(path.native()),
                                 task->describe(), task->size(tasks::Split::kTrain), task->size(tasks::Split::kVal),
                                 task->size(tasks::Split::kTest), kind.name());
  text += indented(task->details());
  for (const std::string& finding : task->findings()) {
    text += "  " + finding + "\n";
  }
  return text;
}

std::string tasks_info() {
  std::string text;
  for (const tasks::TaskKind* kind : tasks::known_tasks()) {
    text += fmt::format("{:<22} {}\n{:<22} models: {}\n", kind->name(), kind->info().help, "",
                        fmt::join(kind->info().models, ", "));
  }
  return text;
}

std::string models_info() {
  std::string text;
  for (const tasks::TaskKind* kind : tasks::known_tasks()) {
    text += kind->name() + "\n";
    for (const std::string& name : kind->info().models) {
      const auto& known = models::known_models();
      const auto found = std::ranges::find(known, name, &models::ModelInfo::name);
      text += fmt::format("  {:<12}{}\n", name, found == known.end() ? "" : found->text);
    }
  }
  return text;
}

std::string machine_info() {
  const device::MachineFacts machine = device::machine_facts();
  std::string text =
      fmt::format("{}\n{}, {} cores, load {:.2f}, {:.1f} GiB memory, {}\n", version_text(), machine.cpu, machine.cores,
                  machine.load_1min, static_cast<double>(machine.memory_bytes) / (1 << 30), machine.kernel);
  const c10::Device device = device::choose_device("auto").device;
  const device::DeviceFacts facts = device::backend_for(device).describe(device);
  text +=
      fmt::format("device {}: {} {}{}\n", device.str(), facts.name, facts.driver, facts.fast_bf16 ? ", fast bf16" : "");
  if (!device.is_cuda()) {
    text += device::missing_reason(c10::kCUDA) + "\n";
  }
  return text;
}

}  // namespace

std::string info_text(const std::string& what) {
  if (what == "models") {
    return models_info();
  }
  if (what == "tasks") {
    return tasks_info();
  }
  if (what == "machine") {
    return machine_info();
  }
  const fs::path path(what);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (const auto runs = RunFolder::runs_in(path); !runs.empty()) {
      return runs_info(path, runs);
    }
    return fs::exists(path / "plan.json", error)       ? run_info(path)
           : fs::exists(path / "manifest.json", error) ? checkpoint_info(path)
                                                       : data_info(path);
  }
  if (!fs::exists(path, error)) {
    fail<DataError>("job.info", "{}: does not exist", printable(what));
  }
  if (path.extension() == ".tar" || &tasks::recognise_task(path) != tasks::known_tasks().back()) {
    return data_info(path);
  }
  if (path.extension() == ".safetensors") {
    return weights_info(path);
  }
  fail<DataError>("job.info", "{}: is not a run, checkpoint, .safetensors file, table, .tar or data folder",
                  printable(what));
}

}  // namespace stoker::job
