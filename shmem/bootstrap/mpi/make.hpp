// SPDX-License-Identifier: Apache-2.0
// The makes of MPI, whose types differ, so that libshmem has a plug-in for each.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace shmem {

/// Room for the text of MPI_Get_library_version of any make: MPICH's MPI_MAX_LIBRARY_VERSION_STRING is 8192.
constexpr std::size_t kMpiVersionRoom = 32768;

/// Follows the version of a library with the binary interface that the MPI standard defines from version 5 on: programs
/// of any make are linked with libmpi_abi.so.
constexpr std::string_view kMpiAbi = " (MPI ABI)";

/// What an MPI says of itself (MPI_Get_library_version), and kMpiAbi if its function is one of libmpi_abi.
inline std::string mpi_description(std::string version, int (*get_version)(char*, int*)) {
  Dl_info info{};
  const bool is_known = ::dladdr(reinterpret_cast<const void*>(get_version), &info) != 0 && info.dli_fname != nullptr;
  const std::string_view path = is_known ? info.dli_fname : "";
  return path.substr(path.rfind('/') + 1).starts_with("libmpi_abi") ? version.append(kMpiAbi) : version;
}

/// The make of the MPI that is described so: "abi" for the standard's interface; "openmpi"; "mpich" for MPICH and for
/// those with the same binary interface; "mpi" for others.
constexpr std::string_view mpi_make(std::string_view version) {
  constexpr auto kNone = std::string_view::npos;
  if (version.ends_with(kMpiAbi)) {
    return "abi";
  }
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
