// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/mpi.hpp"
#include "shmem/bootstrap/pmix.hpp"
#include "shmem/bootstrap/single.hpp"
#include "shmem/bootstrap/tcp.hpp"

namespace shmem {

namespace {

/// Joins the job of the unique id, or of the given session, rank and size.
Result<std::unique_ptr<Bootstrap>> join_by_uid(BootstrapRequest request) {
  const UidSettings& uid = request.uid;
  if (!uid.rank || !uid.size || (!request.id && uid.session.empty())) {
    const char* missing = !uid.rank ? "SHMEM_UID_RANK" : (!uid.size ? "SHMEM_UID_SIZE" : "SHMEM_UID_SESSION_ID");
    return fail(
        std::errc::invalid_argument,
        fmt::format("shmem: SHMEM_BOOTSTRAP=uid needs SHMEM_UID_SESSION_ID (where PE 0 listens), SHMEM_UID_RANK and "
                    "SHMEM_UID_SIZE, or a program that calls shmemx_init_attr; {} is not set",
                    missing));
  }
  if (*uid.rank < 0 || *uid.rank >= *uid.size) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("shmem: there is no PE {} in a job of {} (SHMEM_UID_RANK, SHMEM_UID_SIZE)", *uid.rank, *uid.size));
  }
  TcpPlace place{.rank = *uid.rank, .size = *uid.size, .limit = request.limit, .retries = !request.id};
  if (!request.id) {
    auto id = shared_id(uid);
    if (!id) {
      return id.error();
    }
    request.id = *id;
    if (place.rank == 0 && std::getenv(kJobServedVariable) == nullptr) {
      auto listener = open_shared_listener(uid);
      if (!listener) {
        return listener.error();
      }
      request.listener = *std::move(listener);
    }
  }
  return TcpBootstrap::join(*request.id, place, std::move(request.listener));
}

/// A launcher that starts several processes as a job whose PEs cannot find each other. A process of it that became a
/// job of its own would compute something else without a word.
struct ForeignLauncher {
  const char* name;
  std::array<const char*, 2> marks;  // its variables that are set in each process; nullptr: none
  std::array<const char*, 2> sizes;  // the first that is set has the number of processes; nullptr: none
  const char* advice;
};

constexpr std::array kForeignLaunchers{
    // The shell of an allocation has no step, and the step of salloc's shell has one task.
    ForeignLauncher{
        "srun", {"SLURM_STEP_ID", nullptr}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, "type srun --mpi=pmix ..."},
    ForeignLauncher{"PALS (mpiexec of HPE Cray)",
                    {"PALS_APID", "PALS_RANKID"},
                    {"PMI_SIZE", "PMI_UNIVERSE_SIZE"},
                    "type mpiexec --pmi=pmix ..."},
    ForeignLauncher{
        "flux run", {"FLUX_TASK_RANK", nullptr}, {"FLUX_JOB_SIZE", nullptr}, "type flux run -o pmi=pmix ..."},
    ForeignLauncher{"mpirun of Open MPI",
                    {"OMPI_COMM_WORLD_RANK", nullptr},
                    {"OMPI_COMM_WORLD_SIZE", nullptr},
                    "type mpirun of a version from 2.0"},
    ForeignLauncher{"Hydra (mpiexec of MPICH, Intel MPI or MVAPICH)",
                    {"PMI_RANK", nullptr},
                    {"PMI_SIZE", nullptr},
                    "on one node type oshrun -n {} ..."}};

/// Slurm numbers steps that are no parallel programs (batch script, interactive shell) from here.
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;

bool is_special_step() {
  const char* step = std::getenv("SLURM_STEP_ID");
  return step != nullptr && std::strtoul(step, nullptr, 10) >= kFirstSpecialStep;
}

/// Why this process must not be a job of its own, or "".
std::string foreign_job() {
  for (const ForeignLauncher& launcher : kForeignLaunchers) {
    const auto is_set = [](const char* name) { return name == nullptr || std::getenv(name) != nullptr; };
    if (!std::ranges::all_of(launcher.marks, is_set)) {
      continue;
    }
    const auto* const size = std::ranges::find_if(
        launcher.sizes, [](const char* name) { return name != nullptr && std::getenv(name) != nullptr; });
    const bool known = size != launcher.sizes.end();
    const char* const value = known ? std::getenv(*size) : nullptr;
    const std::string processes = value != nullptr ? value : "";
    if (processes == "1" || is_special_step()) {
      return "";
    }
    const std::string job = known ? fmt::format("one of {} ({}={})", processes, *size, processes)
                                  : fmt::format("part of a job ({} is set)", launcher.marks[0]);
    return fmt::format(
        "{} started this process as {}, but gives it no PMIx, by which PEs find each other: {}, or set "
        "SHMEM_BOOTSTRAP=mpi to start by MPI; SHMEM_BOOTSTRAP=local makes each process a job of one PE",
        launcher.name, job, fmt::format(fmt::runtime(launcher.advice), known ? processes : "N"));
  }
  return "";
}

/// Detects the launcher by its variables in the environment.
Result<std::unique_ptr<Bootstrap>> find_bootstrap(BootstrapRequest request) {
  if (in_local_job()) {
    return join_local_job(request.limit);
  }
  if (request.uid.rank) {
    return join_by_uid(std::move(request));
  }
  if (in_pmix_job()) {
    return join_pmix_job(request.limit);
  }
  if (const std::string problem = foreign_job(); !problem.empty()) {
    return fail(std::errc::not_supported, "shmem: " + problem);
  }
  return std::make_unique<SingleBootstrap>();
}

Result<std::unique_ptr<Bootstrap>> join(BootstrapRequest request) {
  switch (request.kind) {
    case BootstrapKind::kAuto:
      return find_bootstrap(std::move(request));
    case BootstrapKind::kLocal:
      if (in_local_job()) {
        return join_local_job(request.limit);
      }
      return std::make_unique<SingleBootstrap>();
    case BootstrapKind::kUid:
      return join_by_uid(std::move(request));
    case BootstrapKind::kPmix:
      if (in_pmix_job()) {
        return join_pmix_job(request.limit);
      }
      return fail(std::errc::invalid_argument,
                  "shmem: SHMEM_BOOTSTRAP=pmix, but no PMIx launcher started this process: PMIX_NAMESPACE and "
                  "PMIX_RANK are not set; start it by mpirun or srun --mpi=pmix");
    case BootstrapKind::kMpi:
      return join_mpi_job(request.mpi_plugin, request.communicator, request.limit);
  }
  return fail(std::errc::invalid_argument, "shmem: no such bootstrap");
}

}  // namespace

bool in_pmix_job() {
  return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

BootstrapRequest bootstrap_request(const Options& options) {
  return {.kind = options.bootstrap,
          .limit = options.bootstrap_timeout,
          .uid = {.session = options.uid_session_id,
                  .interface = options.uid_sock_ifname,
                  .folder = options.job_folder(),
                  .rank = options.uid_rank,
                  .size = options.uid_size,
                  .shared_secret = options.uid_secret},
          .mpi_plugin = options.mpi_plugin};
}

Result<std::unique_ptr<Bootstrap>> make_bootstrap(BootstrapRequest request) {
  const auto expected = request.expected;
  auto made = join(std::move(request));
  if (!made || !expected || (expected->rank == (*made)->rank() && expected->size == (*made)->size())) {
    return made;
  }
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: the program says that this is PE {} of {}, its launcher says PE {} of {}",
                          expected->rank, expected->size, (*made)->rank(), (*made)->size()));
}

}  // namespace shmem
