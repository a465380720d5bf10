// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_depth.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/io/file_reader.h"
#include "stoker/io/safetensors.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "io.checkpoint";
constexpr const char* kName = "manifest.json";

// The only valid text for a body on disk, so that every changed byte is found, even whitespace.
std::string rendered(const nlohmann::json& body) {
  const nlohmann::json whole = {{"body", body}, {"checksum", checksum_of(as_bytes(body.dump()))}};
  return whole.dump(1) + "\n";
}

Manifest from_body(const nlohmann::json& body) {
  Manifest manifest;
  for (const auto& [name, file] : body.at("files").items()) {
    manifest.files[name] = {file.at("bytes").get<std::uint64_t>(), file.at("xxh3_128").get<std::string>()};
  }
  for (const auto& [name, tensors] : body.at("tensors").items()) {
    manifest.tensors[name] = tensors.get<std::map<std::string, std::string>>();
  }
  return manifest;
}

// Reads a file from its beginning, piece by piece.
class FileInPieces {
 public:
  explicit FileInPieces(const fs::path& path)
      : file_(path), piece_(std::min<std::uint64_t>(file_.size(), std::uint64_t{1} << 20)) {}
  [[nodiscard]] std::uint64_t size() const { return file_.size(); }
  [[nodiscard]] const std::string& name() const { return file_.name(); }
  [[nodiscard]] Manifest::File read_so_far() const { return {at_, whole_.text()}; }
  // Continues where it stopped; returns the checksum of these bytes.
  std::string read_up_to(std::uint64_t end) {
    Checksum range;
    while (at_ < end) {
      const std::span part = std::span(piece_).first(std::min<std::uint64_t>(piece_.size(), end - at_));
      file_.read(at_, part);
      whole_.add(part);
      range.add(part);
      at_ += part.size();
    }
    return range.text();
  }

 private:
  FileReader file_;
  std::vector<std::byte> piece_;
  std::uint64_t at_ = 0;
  Checksum whole_;
};

}  // namespace

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  nlohmann::json body = {
      {"format", kCheckpointFormat}, {"files", nlohmann::json::object()}, {"tensors", nlohmann::json::object()}};
  for (const auto& [name, file] : manifest.files) {
    body["files"][name] = {{"bytes", file.bytes}, {"xxh3_128", file.checksum}};
  }
  for (const auto& [name, tensors] : manifest.tensors) {
    body["tensors"][name] = nlohmann::json(tensors);
  }
  write_file_atomically(folder / kName, rendered(body));
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kName;
  const FileReader file(path);
  if (file.size() > (std::uint64_t{1} << 28)) {
    fail<CheckpointError>(kWhere, "{}: has {} bytes, too many for a manifest", file.name(), file.size());
  }
  std::string text(file.size(), ' ');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (json_nests_deeper(text)) {
    fail<CheckpointError>(kWhere, "{}: is damaged: nested deeper than {} levels", file.name(), kMostJsonLevels);
  }
  try {
    const nlohmann::json whole = nlohmann::json::parse(text);
    const nlohmann::json& body = whole.at("body");
    if (const auto format = body.at("format").get<std::int64_t>(); format != kCheckpointFormat) {
      fail<CheckpointError>(kWhere, "{}: checkpoint format {} is not {}; {}", file.name(), format, kCheckpointFormat,
                            format < kCheckpointFormat ? "Stoker 0.1 reads it" : "a newer Stoker wrote it");
    }
    if (rendered(body) != text) {
      fail<CheckpointError>(kWhere, "{}: is damaged: the checksum does not match its text", file.name());
    }
    return from_body(body);
  } catch (const nlohmann::json::exception&) {
    fail<CheckpointError>(kWhere, "{}: is damaged: not a valid JSON manifest", file.name());
  }
}

Manifest::File measure_file(const fs::path& path, const std::map<std::string, std::string>& tensors) {
  const SafetensorsHeader header = peek_safetensors(path);
  FileInPieces file(path);
  if (header.entries.size() != tensors.size()) {
    fail<CheckpointError>(kWhere, "{}: is damaged: {} tensors were written, but it contains {}", file.name(),
                          tensors.size(), header.entries.size());
  }
  (void)file.read_up_to(header.data_start);
  for (const SafetensorsEntry& entry : header.entries) {  // entries leave no gaps
    check_tensor(file.name(), tensors, entry.name, file.read_up_to(header.data_start + entry.end));
  }
  return file.read_so_far();
}

void check_tensor(const std::string& file, const std::map<std::string, std::string>& tensors, const std::string& tensor,
                  const std::string& found) {
  const auto entry = tensors.find(tensor);
  if (entry == tensors.end() || entry->second != found) {
    fail<CheckpointError>(kWhere, "{}: is damaged: the checksum of tensor \"{}\" is {}, but {} was written", file,
                          printable(tensor), found, entry == tensors.end() ? "none" : entry->second);
  }
}

void check_file(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  const std::string shown = printable((folder / name).native());
  const auto expected = manifest.files.find(name);
  if (expected == manifest.files.end()) {
    fail<CheckpointError>(kWhere, "{}: this file is not in the manifest", shown);
  }
  FileInPieces file(folder / name);
  (void)file.read_up_to(file.size());
  const Manifest::File found = file.read_so_far();
  if (found.bytes != expected->second.bytes) {
    fail<CheckpointError>(kWhere, "{}: is damaged: {} bytes were written, but it has {}", shown, expected->second.bytes,
                          found.bytes);
  }
  if (found.checksum != expected->second.checksum) {
    fail<CheckpointError>(kWhere, "{}: is damaged: its checksum is {}, but {} was written", shown, found.checksum,
                          expected->second.checksum);
  }
}

}  // namespace stoker::io
