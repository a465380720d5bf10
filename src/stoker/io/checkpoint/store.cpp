// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_depth.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/io/checkpoint/manifest.h"
#include "stoker/io/checkpoint/swap_folder.h"
#include "stoker/io/file_reader.h"
#include "stoker/io/safetensors.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;
constexpr std::string_view kWhere = "io.checkpoint";
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kInfo = "info.json";
constexpr const char* kNumbers = "state.json";

// Doubles as the shortest text that reads back the same bits; NaN and infinities as strings.
nlohmann::json to_json(const core::Number& number) {
  if (const auto* whole = std::get_if<std::int64_t>(&number)) {
    return *whole;
  }
  const double value = std::get<double>(number);
  return std::isnan(value)   ? nlohmann::json("nan")
         : std::isinf(value) ? nlohmann::json(value > 0 ? "inf" : "-inf")
                             : nlohmann::json(value);
}

core::Number from_json(const std::string& file, const std::string& name, const nlohmann::json& value) {
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (value.is_number_float()) {
    return value.get<double>();
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [text, number] : {std::pair{"nan", std::numeric_limits<double>::quiet_NaN()},
                                     std::pair{"inf", kInfinity}, std::pair{"-inf", -kInfinity}}) {
    if (value == text) {
      return number;
    }
  }
  fail<CheckpointError>(kWhere, "{}: \"{}\" is not a number", file, printable(name));
}

// The expected content of the file.
Manifest::File write_json(const fs::path& path, const nlohmann::json& value) {
  std::string text;
  try {
    text = value.dump(1) + "\n";
  } catch (const nlohmann::json::exception&) {
    fail<CheckpointError>(kWhere, "{}: contains text that is not valid UTF-8; pass names through printable()",
                          printable(path.native()));
  }
  write_file_atomically(path, text);
  return {text.size(), checksum_of(as_bytes(text))};
}

nlohmann::json read_json(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  check_file(folder, manifest, name);
  const FileReader file(folder / name);
  std::string text(file.size(), ' ');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (json_nests_deeper(text)) {
    fail<CheckpointError>(kWhere, "{}: nested deeper than {} levels, which no version writes; the file is damaged",
                          file.name(), kMostJsonLevels);
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) {
    fail<CheckpointError>(kWhere, "{}: is not valid JSON", file.name());
  }
}

void write_tensors(const fs::path& folder, const std::string& name, const Tensors& tensors, Manifest& manifest) {
  auto& checksums = manifest.tensors[name];
  write_safetensors(folder / name, tensors, {},
                    [&](const std::string& tensor, Bytes bytes) { checksums[tensor] = checksum_of(bytes); });
}

Tensors read_tensors(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  check_file(folder, manifest, name);
  const std::string shown = printable((folder / name).native());
  Tensors tensors = read_safetensors(folder / name).tensors;
  if (!manifest.tensors.contains(name) || manifest.tensors.at(name).size() != tensors.size()) {
    fail<CheckpointError>(kWhere, "{}: contains other tensors than the manifest lists", shown);
  }
  for (const auto& [tensor, value] : tensors) {
    const Bytes bytes(static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes());
    check_tensor(shown, manifest.tensors.at(name), tensor, checksum_of(bytes));
  }
  return tensors;
}

void write_folder(const fs::path& folder, const Checkpoint& checkpoint) {
  Manifest manifest;
  write_tensors(folder, kWeights, checkpoint.weights, manifest);
  write_tensors(folder, kState, checkpoint.state.tensors, manifest);
  manifest.files[kInfo] = write_json(folder / kInfo, checkpoint.info);
  nlohmann::json numbers = nlohmann::json::object();
  for (const auto& [name, number] : checkpoint.state.numbers) {
    numbers[name] = to_json(number);
  }
  manifest.files[kNumbers] = write_json(folder / kNumbers, numbers);
  for (const auto& [name, tensors] : manifest.tensors) {  // compares the data on disk with the data in memory
    manifest.files[name] = measure_file(folder / name, tensors);
  }
  for (const char* name : {kInfo, kNumbers}) {
    check_file(folder, manifest, name);
  }
  write_manifest(folder, manifest);
  (void)read_manifest(folder);
}

void check_name(const std::string& name) {
  const bool fine = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
  if (!fine) {
    fail<ConfigError>(kWhere, "a checkpoint name may contain letters, digits, '-' and '_', got \"{}\"",
                      printable(name));
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail<IoError>(kWhere, "{}: folder cannot be created: {}", printable(folder.native()), error.message());
  }
}

// Writes and verifies the folder completely, or removes it.
void write_fresh(const fs::path& fresh, const Checkpoint& checkpoint) {
  make_folder(fresh);
  try {
    write_folder(fresh, checkpoint);
  } catch (const std::exception&) {
    std::error_code ignored;  // the next save removes the rest
    fs::remove_all(fresh, ignored);
    throw;
  }
}

Checkpoint load(const fs::path& folder, bool with_state) {
  const Manifest manifest = read_manifest(folder);
  Checkpoint checkpoint;
  checkpoint.info = read_json(folder, manifest, kInfo);
  checkpoint.weights = read_tensors(folder, manifest, kWeights);
  if (with_state) {
    checkpoint.state.tensors = read_tensors(folder, manifest, kState);
    const nlohmann::json numbers = read_json(folder, manifest, kNumbers);
    for (const auto& [name, value] : numbers.items()) {
      checkpoint.state.numbers[name] = from_json(printable((folder / kNumbers).native()), name, value);
    }
  }
  return checkpoint;
}

}  // namespace

void CheckpointStore::save(const std::string& name, const Checkpoint& checkpoint) {
  check_name(name);
  make_folder(folder_);
  const SwapPlaces places = swap_places(folder_, name);
  try {
    recover(places);
    write_fresh(places.fresh, checkpoint);
    swap_in(places);  // if it fails, fresh may be the previous checkpoint, so it is kept
  } catch (const fs::filesystem_error& error) {
    fail<IoError>(kWhere, "{}: {}", printable(places.target.native()), error.code().message());
  }
}

fs::path CheckpointStore::path(const std::string& name) const {
  check_name(name);
  const SwapPlaces places = swap_places(folder_, name);
  return fs::exists(places.target) || !fs::exists(places.survivor) ? places.target : places.survivor;
}

bool CheckpointStore::has(const std::string& name) const { return fs::exists(path(name)); }

Checkpoint CheckpointStore::load(const std::string& name) const { return load_checkpoint(path(name)); }

Checkpoint load_checkpoint(const fs::path& folder) { return load(folder, true); }

Checkpoint load_weights(const fs::path& folder) { return load(folder, false); }

nlohmann::json load_info(const fs::path& folder) { return read_json(folder, read_manifest(folder), kInfo); }

}  // namespace stoker::io
