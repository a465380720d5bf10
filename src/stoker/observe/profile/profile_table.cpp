// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/profile_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "stoker/observe/profile/call_tree.h"
#include "stoker/observe/profile/call_work.h"

namespace stoker::observe::profile {
namespace {

constexpr double kNs = 1e-9;

std::string plain_name(const std::string& name) {
  constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
  return name.starts_with(kEvaluate) ? name.substr(kEvaluate.size()) : name;
}

// Of the device, the time that each call had to itself: of overlapping work the one that began first counts.
std::vector<std::int64_t> exposed_on_device(const Recorded& recorded) {
  std::unordered_map<std::uint64_t, std::size_t> by_id;
  for (std::size_t i = 0; i < recorded.calls.size(); ++i) {
    if (recorded.calls[i].id != 0) {
      by_id.emplace(recorded.calls[i].id, i);
    }
  }
  std::vector<std::size_t> order(recorded.work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return recorded.work[i].begin; });
  std::vector<std::int64_t> exposed(recorded.calls.size(), 0);
  std::int64_t covered = INT64_MIN;
  for (const std::size_t each : order) {
    const DeviceWork& work = recorded.work[each];
    const std::int64_t own = std::max<std::int64_t>(0, work.end - std::max(work.begin, covered));
    covered = std::max(covered, work.end);
    if (const auto found = by_id.find(work.call); found != by_id.end()) {
      exposed[found->second] += own;
    }
  }
  return exposed;
}

std::vector<std::int64_t> exposed_on_host(const Recorded& recorded, const CallTree& tree) {
  std::vector<std::int64_t> exposed(recorded.calls.size(), 0);
  for (std::size_t i = 0; i < exposed.size(); ++i) {
    exposed[i] = recorded.calls[i].thread == recorded.thread ? tree.self_ns(i) : 0;
  }
  return exposed;
}

// Arithmetic belongs to the call that does it: of a call with a formula (aten::convolution), the one below it with the
// most time (aten::mkldnn_convolution). A formula of a call below it counts instead.
std::vector<double> flops_by_call(const Recorded& recorded, const CallTree& tree,
                                  const std::vector<std::int64_t>& exposed) {
  const std::size_t size = recorded.calls.size();
  std::vector<double> own(size, 0), result(size, 0);
  std::vector<std::size_t> busiest(size);
  std::vector<char> counted(size, 0);  // a call below it has a formula
  std::iota(busiest.begin(), busiest.end(), std::size_t{0});
  for (auto each = tree.order().rbegin(); each != tree.order().rend(); ++each) {  // children before parents
    const std::size_t i = *each, parent = tree.parent(i);
    own[i] = counted[i] != 0 ? 0 : work_of(recorded.calls[i]).flops;
    result[busiest[i]] += own[i];
    if (parent != CallTree::kNone) {
      counted[parent] = static_cast<char>(counted[parent] != 0 || counted[i] != 0 || own[i] > 0);
      if (exposed[busiest[i]] > exposed[busiest[parent]]) {
        busiest[parent] = busiest[i];
      }
    }
  }
  return result;
}

bool gets_memory_for_another(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name.starts_with("aten::resize_");
}

std::vector<std::int64_t> allocated_by_call(const Recorded& recorded, const CallTree& tree, bool gpu) {
  std::vector<std::int64_t> bytes(recorded.calls.size(), 0);
  for (const Allocation& each : recorded.allocations) {
    const std::size_t call =
        each.bytes > 0 && each.on_host != gpu ? tree.innermost(each.thread, each.time) : CallTree::kNone;
    std::size_t by = call;
    while (by != CallTree::kNone && gets_memory_for_another(recorded.calls[by].name) &&
           tree.parent(by) != CallTree::kNone && !recorded.calls[tree.parent(by)].range) {
      by = tree.parent(by);
    }
    if (by != CallTree::kNone) {
      bytes[by] += each.bytes;
    }
  }
  return bytes;
}

std::vector<PhaseRow> phases_of(const Recorded& recorded) {
  const CallTree ranges(recorded.calls, /*ranges_only=*/true);
  std::vector<PhaseRow> rows;
  for (const std::size_t i : ranges.order()) {
    const Call& call = recorded.calls[i];
    if (call.thread != recorded.thread) {
      continue;
    }
    const std::string name = is_step(call) ? "between the ranges below" : call.name;
    auto row = std::ranges::find(rows, name, &PhaseRow::name);
    if (row == rows.end()) {
      row = rows.insert(rows.end(), PhaseRow{name});
    }
    ++row->calls;
    row->seconds += kNs * static_cast<double>(call.duration());
    row->own_seconds += kNs * static_cast<double>(ranges.self_ns(i));
  }
  return rows;
}

std::vector<KernelRow> kernels_of(const Recorded& recorded) {
  std::map<std::string, KernelRow> rows;
  for (const DeviceWork& work : recorded.work) {
    KernelRow& row = rows[work.name];
    row.name = work.name;
    ++row.calls;
    row.seconds += kNs * static_cast<double>(work.end - work.begin);
    row.indexing = is_indexing(work.name);
  }
  std::vector<KernelRow> result;
  for (auto& [name, row] : rows) {
    result.push_back(std::move(row));
  }
  std::ranges::stable_sort(result, std::greater(), &KernelRow::seconds);
  return result;
}

}  // namespace

ProfileTable profile_table(const Recorded& recorded, bool gpu) {
  ProfileTable table;
  table.on_device = gpu && !recorded.work.empty();
  table.steps = static_cast<std::int64_t>(recorded.steps_ns.size());
  table.seconds =
      kNs * static_cast<double>(std::accumulate(recorded.steps_ns.begin(), recorded.steps_ns.end(), std::int64_t{0}));
  const CallTree tree(recorded.calls);
  const auto exposed = table.on_device ? exposed_on_device(recorded) : exposed_on_host(recorded, tree);
  const auto flops = flops_by_call(recorded, tree, exposed);
  const auto allocated = allocated_by_call(recorded, tree, gpu);
  std::map<std::tuple<std::string, std::string, std::string>, OperatorRow> rows;
  for (std::size_t i = 0; i < recorded.calls.size(); ++i) {
    const Call& call = recorded.calls[i];
    if (call.range) {
      continue;
    }
    const std::string name = plain_name(call.name), shapes = shapes_of(call), type = type_of(call);
    OperatorRow& row = rows.try_emplace({name, shapes, type}, OperatorRow{name, shapes, type}).first->second;
    ++row.calls;
    row.exposed_seconds += kNs * static_cast<double>(exposed[i]);
    row.host_seconds += kNs * static_cast<double>(tree.self_ns(i));
    row.flops += flops[i];
    row.bytes += work_of(call).bytes;
    row.allocated_bytes += allocated[i];
    row.indexing = is_indexing(name);
  }
  for (auto& [key, row] : rows) {
    table.exposed_seconds += row.exposed_seconds;
    table.flops += row.flops;
    table.operators.push_back(std::move(row));
  }
  std::ranges::stable_sort(table.operators, std::greater(), &OperatorRow::exposed_seconds);
  table.phases = phases_of(recorded);
  table.kernels = kernels_of(recorded);
  return table;
}

void compare(ProfileTable& table, const Ceilings& ceilings) {
  double needed = 0;
  bool known = table.flops > 0 && table.seconds > 0;
  for (OperatorRow& row : table.operators) {
    const double product = row.flops > 0 ? ceilings.product(row.type) : -1;
    known = known && (row.flops == 0 || product > 0);
    needed += product > 0 ? row.flops / product : 0;
    if (row.exposed_seconds <= 0) {
      continue;
    }
    if (product > 0) {
      row.of_ceiling = row.flops / row.exposed_seconds / product;
    } else if (row.bytes > 0 && ceilings.bytes_per_second > 0) {
      row.of_ceiling = row.bytes / row.exposed_seconds / ceilings.bytes_per_second;
    }
  }
  table.mfu = known ? needed / table.seconds : -1;
}

std::vector<std::string> product_types(const ProfileTable& table) {
  std::map<std::string, double> flops;
  for (const OperatorRow& row : table.operators) {
    if (row.flops > 0) {
      flops[row.type] += row.flops;
    }
  }
  std::vector<std::string> types;
  for (const auto& [type, sum] : flops) {
    types.push_back(type);
  }
  std::ranges::stable_sort(types, std::greater(), [&](const std::string& type) { return flops[type]; });
  return types;
}

}  // namespace stoker::observe::profile
