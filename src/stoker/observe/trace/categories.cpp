// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/categories.h"

#include <array>

namespace stoker::observe::trace {
namespace {

struct Word {
  std::string_view category;
  Kind kind;
};
constexpr std::array kWords = std::to_array<Word>({
    {"cpu_op", Kind::kOperator},
    {"Operator", Kind::kOperator},
    {"kernel", Kind::kKernel},
    {"Kernel", Kind::kKernel},
    {"gpu_memcpy", Kind::kCopy},
    {"Memcpy", Kind::kCopy},
    {"gpu_memset", Kind::kFill},
    {"Memset", Kind::kFill},
    {"Runtime", Kind::kRuntime},
    {"user_annotation", Kind::kAnnotation},
    {"gpu_user_annotation", Kind::kDeviceAnnotation},
    {"python_function", Kind::kPython},
    {"cuda_sync", Kind::kSync},
    {"overhead", Kind::kOverhead},
});

}  // namespace

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 11> kNames = {"other",  "operator", "runtime",    "kernel",
                                                       "copy",   "fill",     "annotation", "device_annotation",
                                                       "python", "sync",     "overhead"};
  return kNames[static_cast<std::size_t>(kind)];
}

Kind kind_of_category(std::string_view category, bool on_stream) {
  for (const Word& word : kWords) {
    if (category == word.category) {
      return word.kind;
    }
  }
  if (category.ends_with("_runtime") || category.ends_with("_driver")) {
    return Kind::kRuntime;
  }
  return on_stream ? Kind::kKernel : Kind::kOther;  // of other accelerators: "mtia_ccp_events"
}

bool is_step(std::string_view name) { return name.starts_with("ProfilerStep#"); }

Kind kind_of_name(Kind by_category, std::string_view name) {
  if (by_category != Kind::kOperator) {
    return by_category;
  }
  const bool range = is_step(name) || name.starts_with("enumerate(DataLoader)#") || name.starts_with("Optimizer.");
  return range ? Kind::kAnnotation : by_category;
}

Work work_of(Kind kind, std::string_view name) {
  if (kind == Kind::kCopy || kind == Kind::kFill || name.starts_with("Memcpy") || name.starts_with("Memset") ||
      name.starts_with("dma")) {
    return Work::kMemory;
  }
  const bool collective = (name.starts_with("nccl") && name.find("Kernel") != std::string_view::npos) ||
                          name.starts_with("ncclDevKernel") || name.starts_with("rcclGenericKernel") ||
                          name.find("oneccl") != std::string_view::npos;
  return collective ? Work::kCommunication : Work::kCompute;
}

std::string_view work_name(Work work) {
  constexpr std::array<std::string_view, 3> kNames = {"compute", "communication", "memory"};
  return kNames[static_cast<std::size_t>(work)];
}

}  // namespace stoker::observe::trace
