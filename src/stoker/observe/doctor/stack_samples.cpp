// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/stack_samples.h"

#include <algorithm>
#include <charconv>
#include <istream>
#include <optional>
#include <set>
#include <string_view>

namespace stoker::observe::doctor {
namespace {

struct Frame {
  std::string_view function, file, line;
};

// "backward (torch/autograd/__init__.py:381)"
Frame frame_of(std::string_view text) {
  const std::size_t open = text.rfind(" ("), colon = text.rfind(':');
  if (open == std::string_view::npos || colon == std::string_view::npos || colon < open || !text.ends_with(')')) {
    return {text, {}, {}};
  }
  return {text.substr(0, open), text.substr(open + 2, colon - open - 2),
          text.substr(colon + 1, text.size() - colon - 2)};
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

struct Stack {
  int pid = 0;
  bool main = false;
  std::int64_t count = 0;
  std::vector<Frame> frames;  // the outermost first
};

// `process 7:"python train.py";thread (7): MainThread;<module> (train.py:3);step (train.py:9) 12`; a command may hold
// semicolons.
std::optional<Stack> stack_of(std::string_view line) {
  constexpr std::string_view kProcess = "process ", kThread = ";thread (";
  const std::size_t space = line.rfind(' '), thread = line.rfind(kThread);
  const std::size_t process = line.rfind(kProcess, thread);
  if (space == std::string_view::npos || thread == std::string_view::npos || process == std::string_view::npos ||
      space < thread) {
    return std::nullopt;
  }
  const auto count = number_in<std::int64_t>(line.substr(space + 1));
  const auto pid = number_in<int>(line.substr(process + kProcess.size()));
  if (!count || !pid || *count <= 0) {
    return std::nullopt;
  }
  Stack stack{.pid = *pid, .main = false, .count = *count, .frames = {}};
  std::string_view rest = line.substr(thread + 1, space - thread - 1);
  for (bool first = true; !rest.empty(); first = false) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view part = rest.substr(0, end);
    first ? void(stack.main = part.ends_with(": MainThread")) : stack.frames.push_back(frame_of(part));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return stack;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What the main thread does, by the outermost of torch's functions that says it.
std::string_view part_of(const Stack& stack) {
  for (const Frame& each : stack.frames) {
    if (each.file.ends_with("torch/utils/data/dataloader.py") && holds(each.function, "__next__")) {
      return "fetch";
    }
    if (each.file.ends_with("torch/utils/data/dataloader.py") && holds(each.function, "__iter__")) {
      return "loader_start";
    }
    if (holds(each.file, "torch/optim/")) {
      return holds(each.function, "zero_grad") ? "zero_grad" : "optimizer";
    }
    if (each.file.ends_with("torch/_tensor.py") && holds(each.function, "backward")) {
      return "backward";
    }
    if (each.file.ends_with("torch/serialization.py") && holds(each.function, "save")) {
      return "checkpoint";
    }
    if (holds(each.file, "/tensorboard/") || holds(each.file, "/tensorboardX/") || holds(each.file, "/wandb/") ||
        holds(each.file, "/mlflow/")) {
      return "logging";
    }
    if (holds(each.file, "torch/_dynamo/")) {
      return "compile";
    }
  }
  return "other";
}

// What a worker of a DataLoader does; empty: it is none.
std::string_view worker_part(const Stack& stack) {
  bool worker = false;
  std::string_view part;
  for (const Frame& each : stack.frames) {
    if (each.file.ends_with("torch/utils/data/_utils/worker.py")) {
      worker = true;
      part = "loader.waiting";
    } else if (worker && each.file.ends_with("torch/utils/data/_utils/fetch.py")) {
      part = "loader.samples";
    } else if (part == "loader.samples" && holds(each.function, "collate")) {
      part = "loader.collate";
    }
  }
  return part;
}

// Whether the script's own files hold it, not a library's.
bool is_own(const Frame& frame) {
  if (frame.file.empty() || frame.file.starts_with('<')) {
    return false;
  }
  constexpr std::string_view kLibraries[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "/torch/",
                                             "/torchvision/"};
  return std::ranges::none_of(kLibraries, [&](std::string_view each) { return holds(frame.file, each); });
}

void add_site(const Stack& stack, std::string_view part, StackSamples& samples) {
  const Frame* own = nullptr;
  for (const Frame& each : stack.frames) {
    own = is_own(each) ? &each : own;
  }
  if (own == nullptr) {
    return;
  }
  const std::string where = std::string(own->file) + ":" + std::string(own->line);
  const auto known =
      std::ranges::find_if(samples.sites, [&](const Site& each) { return each.part == part && each.where == where; });
  if (known != samples.sites.end()) {
    known->looks += stack.count;
  } else {
    samples.sites.push_back({.part = std::string(part),
                             .where = where,
                             .text = std::string(own->function),
                             .module = {},
                             .looks = stack.count});
  }
}

}  // namespace

void StackSamples::add(const StackSamples& later) {
  for (const auto& [part, count] : later.parts) {
    parts[part] += count;
  }
  all += later.all;
  workers = std::max(workers, later.workers);
  of_workers += later.of_workers;
  samples += later.samples;
  collate += later.collate;
  for (const Site& site : later.sites) {
    const auto known = std::ranges::find_if(
        sites, [&](const Site& each) { return each.part == site.part && each.where == site.where; });
    known != sites.end() ? void(known->looks += site.looks) : sites.push_back(site);
  }
  std::ranges::stable_sort(sites, std::ranges::greater(), &Site::looks);
}

StackSamples read_stacks(std::istream& folded, int pid) {
  StackSamples samples;
  std::set<int> workers;
  for (std::string line; std::getline(folded, line);) {
    const std::optional<Stack> stack = stack_of(line);
    if (!stack || !stack->main) {
      continue;
    }
    if (stack->pid == pid) {
      const std::string_view part = part_of(*stack);
      samples.parts[std::string(part)] += stack->count;
      samples.all += stack->count;
      add_site(*stack, part, samples);
    } else if (const std::string_view part = worker_part(*stack); !part.empty()) {
      workers.insert(stack->pid);
      samples.of_workers += stack->count;
      samples.samples += part == "loader.samples" ? stack->count : 0;
      samples.collate += part == "loader.collate" ? stack->count : 0;
      if (part != "loader.waiting") {
        add_site(*stack, part, samples);
      }
    }
  }
  samples.workers = static_cast<int>(workers.size());
  std::ranges::stable_sort(samples.sites, std::ranges::greater(), &Site::looks);
  return samples;
}

}  // namespace stoker::observe::doctor
