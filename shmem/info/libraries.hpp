// SPDX-License-Identifier: Apache-2.0
// The libraries that libshmem loads when a job needs them: which of them this machine has.
#pragma once

#include <string>

namespace shmem_info {

struct LoadedLibrary {
  std::string file;
  std::string version;  // "": it cannot be loaded
  std::string problem;  // why
};

/// UCX, for jobs on several nodes.
LoadedLibrary find_ucx();
/// PMIx, for mpirun and srun.
LoadedLibrary find_pmix();

}  // namespace shmem_info
