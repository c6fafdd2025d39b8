// SPDX-License-Identifier: Apache-2.0
// The bootstrap of PEs that a PMIx launcher started: mpirun, srun --mpi=pmix and others.
#pragma once

#include <chrono>
#include <memory>

#include "shmem/bootstrap/bootstrap.hpp"

namespace shmem {

/// True if the environment says that such a launcher started this process.
bool in_pmix_job();
/// Joins the job of that launcher.
Result<std::unique_ptr<Bootstrap>> join_pmix_job(std::chrono::milliseconds limit);

}  // namespace shmem
