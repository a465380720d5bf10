// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/place.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/parallel/node_list.h"
#include "stoker/parallel/process_stat.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.place";
constexpr int kMostRanks = 1 << 16;

// The variables of one starter.
class Variables {
 public:
  Variables(const Environment& environment, std::string starter)
      : environment_(environment), starter_(std::move(starter)) {}

  [[nodiscard]] bool has(const char* name) const { return environment_(name) != nullptr; }
  [[nodiscard]] std::string text(const char* name) const {
    const char* const value = environment_(name);
    if (value == nullptr || *value == '\0') {
      fail<ConfigError>(kWhere, "{} is not set, but other variables of {} are; start all ranks with {}, or unset them",
                        name, starter_, starter_);
    }
    return value;
  }
  [[nodiscard]] int number(const char* name, int least, int most) const {
    const std::string value = text(name);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
      fail<ConfigError>(kWhere, "{} must be a whole number from {} to {}, got \"{}\"; {} sets it", name, least, most,
                        printable(value), starter_);
    }
    return number;
  }
  [[nodiscard]] int number_or(const char* name, int fallback, int least, int most) const {
    return has(name) ? number(name, least, most) : fallback;
  }

 private:
  const Environment& environment_;
  std::string starter_;
};

Place ranked(const Variables& from, std::string starter, const char* rank, const char* ranks) {
  Place place;
  place.starter = std::move(starter);
  place.ranks = from.number(ranks, 1, kMostRanks);
  place.rank = from.number(rank, 0, place.ranks - 1);
  return place;
}

void put_on_node(Place& place, const Variables& from, const char* local_rank, const char* local_ranks) {
  place.local_ranks = from.number_or(local_ranks, 1, 1, place.ranks);
  place.local_rank = from.number_or(local_rank, 0, 0, place.local_ranks - 1);
}

// The address that torchrun, Kubernetes and people who start ranks by hand give.
MeetingPoint master(const Variables& from, int rank) {
  MeetingPoint meeting;
  meeting.host = from.text("MASTER_ADDR");
  meeting.port = from.number("MASTER_PORT", 1, 65535);
  meeting.serves = rank == 0;
  return meeting;
}

// A file in a folder of this user alone, for ranks of one node. It stays, so no later run may have its name: names of
// jobs come again, in containers and where Slurm lost its state.
std::string file_for(const std::string& name) {
  const char* const folder = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path base = folder != nullptr && *folder != '\0' ? std::filesystem::path(folder)
                                                                          : std::filesystem::temp_directory_path() /
                                                                                fmt::format("stoker-{}", ::getuid());
  return (base / name).native();
}

std::string content_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Names the process that started the ranks of this node: its number, and when it began. Ranks may run in shells of
// their own, so it is the first one above that has no variable of a rank, or does not show its variables.
std::string starter_number(const std::string& variable) {
  constexpr int kParent = 2, kBegan = 20;  // fields after the name (man proc_pid_stat: fields 4 and 22)
  constexpr int kMostParents = 64;
  std::string process = std::to_string(::getppid()), began;
  for (int i = 0; i < kMostParents; ++i) {
    const std::vector<std::string> fields = process_stat(process);
    if (fields.size() < kBegan) {  // beyond the own container
      break;
    }
    began = fields[kBegan - 1];
    if (('\0' + content_of("/proc/" + process + "/environ")).find('\0' + variable + '=') == std::string::npos) {
      break;
    }
    process = fields[kParent - 1];
  }
  return fmt::format("{}-{}", process, began);
}

Place of_stoker(const Environment& environment) {
  const Variables from(environment, "stoker");
  Place place = ranked(from, "ranks=", "STOKER_RANK", "STOKER_RANKS");
  place.local_rank = place.rank;
  place.local_ranks = place.ranks;
  place.meeting.file = from.text("STOKER_MEETING_FILE");
  return place;
}

Place of_torchrun(const Environment& environment) {
  const bool elastic = environment("TORCHELASTIC_RUN_ID") != nullptr;
  const Variables from(environment, elastic ? "torchrun" : "the starter");
  Place place = ranked(from, elastic ? "torchrun" : "RANK and WORLD_SIZE", "RANK", "WORLD_SIZE");
  put_on_node(place, from, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  place.restarts = from.number_or("TORCHELASTIC_RESTART_COUNT", 0, 0, std::numeric_limits<int>::max());
  place.meeting = master(from, place.rank);
  if (elastic) {
    const std::string id = from.text("TORCHELASTIC_RUN_ID");
    place.start_id = fmt::format(
        "torchrun {}", id == "none" ? starter_number("TORCHELASTIC_RUN_ID") : id);  // that of all who give none
    place.restarts_all = true;
    const char* const agent = environment("TORCHELASTIC_USE_AGENT_STORE");
    const bool agents_store = agent != nullptr && std::string_view(agent) == "True";
    place.meeting.serves = place.meeting.serves && !agents_store;
    // The store of an agent outlives its ranks, so each start has keys of its own. Agents that joined later have
    // counted fewer restarts, but those have no store in common.
    place.meeting.prefix = agents_store ? fmt::format("{}/{}", id, place.restarts) : id;
  }
  return place;
}

// `srun` inside a job. A batch script itself has SLURM_NTASKS, too, but is one process.
Place of_slurm(const Environment& environment) {
  constexpr int kFirstPort = 20'000, kPorts = 10'000;  // below the ports that Linux gives away, 32768 and more
  const Variables from(environment, "srun");
  Place place = ranked(from, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  const int nodes = from.number("SLURM_STEP_NUM_NODES", 1, kMostRanks);
  const std::vector<int> ranks_of_nodes = counts_of(from.text("SLURM_STEP_TASKS_PER_NODE"));
  const auto node = static_cast<std::size_t>(from.number("SLURM_NODEID", 0, nodes - 1));
  place.local_ranks = node < ranks_of_nodes.size() ? ranks_of_nodes[node] : place.ranks;
  place.local_rank = from.number("SLURM_LOCALID", 0, place.local_ranks - 1);
  place.restarts = from.number_or("SLURM_RESTART_COUNT", 0, 0, std::numeric_limits<int>::max());
  const std::string job = from.text("SLURM_JOB_ID");
  const std::string step = fmt::format("{}.{}", job, from.text("SLURM_STEP_ID"));
  place.start_id = "Slurm " + step;
  place.meeting.prefix = fmt::format("{}.{}", step, place.restarts);
  if (nodes == 1) {
    place.meeting.file = file_for(fmt::format("slurm-{}-{}", place.meeting.prefix, starter_number("SLURM_PROCID")));
    return place;
  }
  if (environment("MASTER_ADDR") != nullptr) {
    const std::string prefix = std::exchange(place.meeting, master(from, place.rank)).prefix;
    place.meeting.prefix = prefix;
    return place;
  }
  place.meeting.host = hosts_of(from.text("SLURM_STEP_NODELIST")).front();
  place.meeting.port = kFirstPort + static_cast<int>(std::hash<std::string>()(job) % kPorts);
  place.meeting.serves = place.rank == 0;
  return place;
}

Place of_mpi(const Environment& environment, std::string name, const char* rank, const char* ranks,
             const char* local_rank, const char* local_ranks) {
  const Variables from(environment, "mpirun");
  Place place = ranked(from, std::move(name), rank, ranks);
  put_on_node(place, from, local_rank, local_ranks);
  if (environment("MASTER_ADDR") != nullptr) {
    place.meeting = master(from, place.rank);
  } else if (place.one_node()) {
    place.meeting.file = file_for("mpi-" + starter_number(rank));
  } else {
    fail<ConfigError>(kWhere,
                      "{} ranks on several nodes need a place to meet; give mpirun the variables MASTER_ADDR, "
                      "the host of rank 0, and MASTER_PORT, a free port there",
                      place.ranks);
  }
  return place;
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

std::optional<Place> place_of(const Environment& environment) {
  if (environment("STOKER_RANKS") != nullptr) {
    return of_stoker(environment);
  }
  if (const char* const size = environment("WORLD_SIZE");
      environment("RANK") != nullptr || (size != nullptr && size != std::string_view("1"))) {
    return of_torchrun(environment);
  }
  // In a job of Slurm, mpirun starts its servers by srun, whose variables the ranks have, too.
  if (environment("OMPI_COMM_WORLD_SIZE") != nullptr) {
    return of_mpi(environment, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE");
  }
  const bool slurm = environment("SLURM_STEP_NUM_TASKS") != nullptr && environment("SLURM_PROCID") != nullptr;
  const bool hydra = environment("MPI_LOCALRANKID") != nullptr;  // srun --mpi=pmi2 sets the PMI_ ones alone
  if (environment("PMI_SIZE") != nullptr && (hydra || !slurm)) {
    return of_mpi(environment, "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  }
  if (slurm) {
    return of_slurm(environment);
  }
  return std::nullopt;
}

}  // namespace stoker::parallel
