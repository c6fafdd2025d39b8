// SPDX-License-Identifier: Apache-2.0
// Finds the plug-in for the MPI of this process.
#pragma once

#include <string>

#include "shmem/bootstrap/mpi/plugin.h"
#include "shmem/result.hpp"

namespace shmem {

/// How the MPI that this process has loaded describes itself, in one line; "": it has loaded none. Of several, the one
/// that is initialised. Also finds an MPI that only some other library can see, as in Python.
std::string loaded_mpi();

/// The file of libshmem's own plug-in for that MPI.
std::string mpi_plugin_name(const std::string& version);

/// Loads the plug-in at `path`, or libshmem's own for the loaded MPI if that is empty. It stays loaded.
Result<const shmem_mpi_plugin*> load_mpi_plugin(const std::string& path);

}  // namespace shmem
