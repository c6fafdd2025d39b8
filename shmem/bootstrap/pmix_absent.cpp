// SPDX-License-Identifier: Apache-2.0
// For builds without the headers of PMIx.
#include "shmem/bootstrap/pmix.hpp"

namespace shmem {

Result<std::unique_ptr<Bootstrap>> join_pmix_job(std::chrono::milliseconds /*limit*/) {
  return fail(std::errc::not_supported,
              "shmem: a PMIx launcher (mpirun, srun) is to start this job, but this libshmem was built without PMIx: "
              "build it where libpmix-dev is installed, or start the job by oshrun, by a unique id, or with "
              "SHMEM_BOOTSTRAP=local as jobs of one PE each");
}

}  // namespace shmem
