// SPDX-License-Identifier: Apache-2.0
// The makes of MPI, whose types differ, so that libshmem has a plug-in for each.
#pragma once

#include <cstddef>
#include <string_view>

namespace shmem {

/// Room for the text of MPI_Get_library_version of any make: MPICH's MPI_MAX_LIBRARY_VERSION_STRING is 8192.
constexpr std::size_t kMpiVersionRoom = 32768;

/// The make of the MPI that describes itself so (MPI_Get_library_version): "openmpi"; "mpich" for MPICH and for those
/// with the same binary interface; "mpi" for others.
constexpr std::string_view mpi_make(std::string_view version) {
  constexpr auto kNone = std::string_view::npos;
  if (version.find("Open MPI") != kNone) {
    return "openmpi";
  }
  for (const std::string_view name : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    if (version.find(name) != kNone) {
      return "mpich";
    }
  }
  return "mpi";
}

}  // namespace shmem
