// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/io/file_reader.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "io.checkpoint";
constexpr const char* kName = "manifest.json";

// The only text that a body may have on disk, so that a changed byte is found even where JSON would not care.
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
  try {
    const nlohmann::json whole = nlohmann::json::parse(text);
    const nlohmann::json& body = whole.at("body");
    if (const auto format = body.at("format").get<std::int64_t>(); format > kCheckpointFormat) {
      fail<CheckpointError>(kWhere, "{}: is of format {}, this version reads up to {}; use a newer stoker", file.name(),
                            format, kCheckpointFormat);
    }
    if (rendered(body) != text) {
      fail<CheckpointError>(kWhere, "{}: is damaged: its checksum does not fit its text", file.name());
    }
    return from_body(body);
  } catch (const nlohmann::json::exception&) {
    fail<CheckpointError>(kWhere, "{}: is damaged: no valid manifest in JSON", file.name());
  }
}

Manifest::File measure_file(const fs::path& path) {
  const FileReader file(path);
  Checksum checksum;
  std::vector<std::byte> piece(std::min<std::uint64_t>(file.size(), std::uint64_t{1} << 20));
  for (std::uint64_t done = 0; done < file.size();) {
    const std::span part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), file.size() - done));
    file.read(done, part);
    checksum.add(part);
    done += part.size();
  }
  return {file.size(), checksum.text()};
}

void check_file(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  const std::string shown = printable((folder / name).native());
  const auto expected = manifest.files.find(name);
  if (expected == manifest.files.end()) {
    fail<CheckpointError>(kWhere, "{}: the manifest does not name this file", shown);
  }
  const Manifest::File found = measure_file(folder / name);
  if (found.bytes != expected->second.bytes) {
    fail<CheckpointError>(kWhere, "{}: is damaged: {} bytes were written, {} are there", shown, expected->second.bytes,
                          found.bytes);
  }
  if (found.checksum != expected->second.checksum) {
    fail<CheckpointError>(kWhere, "{}: is damaged: its checksum is {}, {} was written", shown, found.checksum,
                          expected->second.checksum);
  }
}

}  // namespace stoker::io
