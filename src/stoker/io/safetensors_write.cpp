// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/core/text.h"
#include "stoker/io/safetensors.h"
#include "stoker/io/safetensors_dtype.h"
#include "stoker/io/safetensors_header.h"

namespace stoker::io {
namespace {

constexpr std::string_view kWhere = "io.safetensors";

struct Item {
  const std::string* name;
  const at::Tensor* tensor;
  int rank;
};

// Widest dtype first, then by name, as in the reference implementation.
std::vector<Item> sorted(const std::string& file, const std::map<std::string, at::Tensor>& tensors) {
  std::vector<Item> items;
  for (const auto& [name, tensor] : tensors) {
    const bool plain = tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
                       !tensor.is_meta() && name != "__metadata__";
    const int rank = plain ? dtype_rank(tensor.scalar_type()) : -1;
    if (rank < 0) {
      fail<CheckpointError>(kWhere, "{}: tensor \"{}\" ({}) cannot be stored in this format", file, printable(name),
                            core::describe(tensor));
    }
    items.push_back({&name, &tensor, rank});
  }
  std::ranges::stable_sort(items, std::greater<>(), &Item::rank);  // the map is already sorted by name
  return items;
}

std::string header_text(const std::string& file, const std::vector<Item>& items,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  std::uint64_t offset = 0;
  for (const Item& item : items) {
    const std::uint64_t end = offset + item.tensor->nbytes();
    nlohmann::ordered_json& info = header[*item.name];
    info["dtype"] = kSafetensorsDtypes[static_cast<std::size_t>(item.rank)].name;
    info["shape"] = item.tensor->sizes().vec();
    info["data_offsets"] = {offset, end};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {  // the only error of dump()
    fail<CheckpointError>(kWhere, "{}: a tensor name or metadata is not valid UTF-8", file);
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    fail<CheckpointError>(kWhere, "{}: a header of {} bytes exceeds the format's limit of {}", file, text.size(),
                          kMaxHeaderBytes);
  }
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata, const TensorBytesSeen& seen) {
  const std::string file = printable(path.native());
  const std::vector<Item> items = sorted(file, tensors);
  const std::string header = header_text(file, items, metadata);
  write_file_atomically(path, [&](FileWriter& writer) {
    const std::uint64_t length = header.size();
    writer.write(std::as_bytes(std::span(&length, 1)));
    writer.write(as_bytes(header));
    for (const Item& item : items) {
      const at::Tensor plain = item.tensor->detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
      const Bytes bytes(static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes());
      if (seen) {
        seen(*item.name, bytes);
      }
      writer.write(bytes);
    }
  });
}

}  // namespace stoker::io
