// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/host_work.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "stoker/observe/trace/categories.h"

namespace stoker::observe::trace {
namespace {

bool holds_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// Calls of CUDA and HIP have the same names after their prefixes.
std::string_view without_prefix(std::string_view call) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (call.starts_with(prefix)) {
      return call.substr(prefix.size());
    }
  }
  return call;
}

Doing of_runtime(std::string_view name) {
  const std::string_view call = without_prefix(name);
  // EventQuery is in HolisticTraceAnalysis' list of blocking calls, too. A copy blocks if its host memory is pageable:
  // https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html
  if (holds_any(call, {"Synchronize", "synchronize", "EventQuery", "waitOnEvent"}) || call.starts_with("Memcpy")) {
    return Doing::kSync;
  }
  if (holds_any(call,
                {"Malloc", "HostAlloc", "MemCreate", "MemMap", "HostRegister", "MemAlloc", "MemAddressReserve"}) ||
      call == "Free" || call == "FreeHost" || call == "FreeAsync" || call == "MemFree" || call == "MemRelease" ||
      call == "MemUnmap") {
    return Doing::kAllocation;
  }
  if (holds_any(call, {"ModuleLoad", "LibraryLoad", "LinkCreate", "ModuleGetFunction"})) {
    return Doing::kCompiling;
  }
  return Doing::kLaunching;
}

Doing of_frame(std::string_view name) {
  if (holds_any(name, {"dataloader.py", "/utils/data/"}) &&
      holds_any(name, {"__next__", "_next_data", "_get_data", "_try_get_data", "fetch"})) {
    return Doing::kFetch;
  }
  if (holds_any(name, {"torch/serialization.py", "torch/utils/tensorboard", "tensorboardX", "logging/__init__.py",
                       "checkpoint/state_dict_saver", "wandb/sdk", "mlflow/", "built-in function print"})) {
    return Doing::kSaving;
  }
  if (holds_any(name, {"torch/_inductor/", "torch/_dynamo/convert_frame", "triton/compiler", "triton/runtime/jit"})) {
    return Doing::kCompiling;
  }
  return Doing::kLaunching;
}

Doing of_range(std::string_view name) {
  if (holds_any(name, {"DataLoader", "data_load", "load_batch", "next_batch", "wait_for_batch", "dataloader"})) {
    return Doing::kFetch;
  }
  if (holds_any(name, {"checkpoint", "Checkpoint", "save_model", "logging"})) {
    return Doing::kSaving;
  }
  if (name.starts_with("c10d::") || name.starts_with("nccl:") || name.starts_with("gloo:") ||
      name.starts_with("hccl:") || name.starts_with("record_param_comms")) {
    return Doing::kCollective;
  }
  if (name.starts_with("Torch-Compiled Region") || holds_any(name, {"compile_fx", "triton_compile"})) {
    return name.starts_with("Torch-Compiled Region") ? Doing::kLaunching : Doing::kCompiling;
  }
  return Doing::kLaunching;
}

bool is_library_frame(std::string_view name) {
  return name.starts_with("<") || holds_any(name, {"torch/", "site-packages/", "dist-packages/", "lib/python"});
}

}  // namespace

std::string_view doing_name(Doing doing) {
  constexpr std::array<std::string_view, kDoings> kNames = {
      "unattributed",   "operators and launches", "named code",
      "batch fetch",    "saving and logging",     "collectives",
      "compiling",      "waiting for the device", "memory from the driver",
      "launch latency", "queued on the device"};
  return kNames[static_cast<std::size_t>(doing)];
}

std::string_view doing_key(Doing doing) {
  constexpr std::array<std::string_view, kDoings> kKeys = {"unattributed", "launching",  "range",     "fetch",
                                                           "saving",       "collective", "compiling", "sync",
                                                           "allocation",   "latency",    "queued"};
  return kKeys[static_cast<std::size_t>(doing)];
}

HostWords::HostWords(const Trace& trace, const Links& links)
    : trace_(trace),
      links_(links),
      of_name_(trace.names.size(), Doing::kUnattributed),
      library_(trace.names.size(), false) {
  for (const Event& event : trace.events) {
    Doing& doing = of_name_[event.name];
    if (doing != Doing::kUnattributed || !is_host_call(event)) {
      continue;
    }
    const std::string_view name = trace.name(event);
    doing = event.kind == Kind::kRuntime  ? of_runtime(name)
            : event.kind == Kind::kPython ? of_frame(name)
                                          : of_range(name);
    library_[event.name] = event.kind == Kind::kPython && is_library_frame(name);
  }
}

HostWork HostWords::work(std::uint32_t event) const {
  HostWork best;
  for (std::uint32_t call = event; call != kNone; call = links_.caller(call)) {
    const Doing doing = of_name_[trace_.events[call].name];
    const bool outer = doing == Doing::kFetch || doing == Doing::kSaving || doing == Doing::kCollective;
    if (outer || (doing >= Doing::kFetch && best.event == kNone)) {
      best = {doing, call};
    }
  }
  return best.event == kNone ? by_calls(event) : best;
}

// By what kind of call it is: an operator or runtime call launches work; else the innermost range of the program, or
// the innermost frame of its own files, or any frame.
HostWork HostWords::by_calls(std::uint32_t event) const {
  std::uint32_t library_frame = kNone;
  for (std::uint32_t call = event; call != kNone; call = links_.caller(call)) {
    const Event& each = trace_.events[call];
    switch (each.kind) {
      case Kind::kOperator:
      case Kind::kRuntime: {
        const std::uint32_t outermost = links_.outermost_operator(call);
        return {Doing::kLaunching, outermost == kNone ? call : outermost};
      }
      case Kind::kAnnotation:
        if (!is_step(trace_.name(each)) && library_frame == kNone) {
          return {Doing::kRange, call};
        }
        break;
      case Kind::kPython:
        if (!library_[each.name]) {
          return {Doing::kRange, call};
        }
        library_frame = library_frame == kNone ? call : library_frame;
        break;
      default: break;
    }
  }
  return library_frame == kNone ? HostWork{} : HostWork{Doing::kRange, library_frame};
}

}  // namespace stoker::observe::trace
