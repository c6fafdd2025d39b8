// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/mpi.hpp"
#include "shmem/bootstrap/pmix.hpp"
#include "shmem/bootstrap/single.hpp"
#include "shmem/bootstrap/tcp.hpp"

namespace shmem {

namespace {

/// The job that has an id, or the one whose session, rank and size are given.
Result<std::unique_ptr<Bootstrap>> join_by_uid(BootstrapRequest request) {
  const UidSettings& uid = request.uid;
  if (!uid.rank || !uid.size || (!request.id && uid.session.empty())) {
    const char* missing = !uid.rank ? "SHMEM_UID_RANK" : (!uid.size ? "SHMEM_UID_SIZE" : "SHMEM_UID_SESSION_ID");
    return fail(std::errc::invalid_argument,
                std::string("shmem: SHMEM_BOOTSTRAP=uid needs SHMEM_UID_SESSION_ID (where PE 0 listens), "
                            "SHMEM_UID_RANK and SHMEM_UID_SIZE, or a program that calls shmemx_init_attr; ") +
                    missing + " is not set");
  }
  if (*uid.rank < 0 || *uid.rank >= *uid.size) {
    return fail(std::errc::invalid_argument, "shmem: there is no PE " + std::to_string(*uid.rank) + " in a job of " +
                                                 std::to_string(*uid.size) + " (SHMEM_UID_RANK, SHMEM_UID_SIZE)");
  }
  TcpPlace place{.rank = *uid.rank, .size = *uid.size, .limit = request.limit, .patient = !request.id};
  if (!request.id) {
    auto id = shared_id(uid);
    if (!id) return tl::make_unexpected(id.error());
    request.id = *id;
    if (place.rank == 0) {
      auto listener = open_shared_listener(uid);
      if (!listener) return tl::make_unexpected(listener.error());
      request.listener = *std::move(listener);
    }
  }
  return TcpBootstrap::join(*request.id, place, std::move(request.listener));
}

/// The launcher is found by what it left in the environment.
Result<std::unique_ptr<Bootstrap>> find_bootstrap(BootstrapRequest request) {
  if (in_local_job()) return join_local_job(request.limit);
  if (request.uid.rank) return join_by_uid(std::move(request));
  if (in_pmix_job()) return join_pmix_job(request.limit);
  return std::make_unique<SingleBootstrap>();
}

Result<std::unique_ptr<Bootstrap>> join(BootstrapRequest request) {
  switch (request.kind) {
    case BootstrapKind::kAuto:
      return find_bootstrap(std::move(request));
    case BootstrapKind::kLocal:
      if (in_local_job()) return join_local_job(request.limit);
      return std::make_unique<SingleBootstrap>();
    case BootstrapKind::kUid:
      return join_by_uid(std::move(request));
    case BootstrapKind::kPmix:
      if (in_pmix_job()) return join_pmix_job(request.limit);
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
                  .rank = options.uid_rank,
                  .size = options.uid_size,
                  .shared_secret = options.uid_secret},
          .mpi_plugin = options.mpi_plugin};
}

Result<std::unique_ptr<Bootstrap>> make_bootstrap(BootstrapRequest request) {
  const auto expected = request.expected;
  auto made = join(std::move(request));
  if (!made || !expected || (expected->rank == (*made)->rank() && expected->size == (*made)->size())) return made;
  return fail(std::errc::invalid_argument, "shmem: the program says that this is PE " + std::to_string(expected->rank) +
                                               " of " + std::to_string(expected->size) +
                                               ", whoever started it that it is PE " + std::to_string((*made)->rank()) +
                                               " of " + std::to_string((*made)->size()));
}

}  // namespace shmem
