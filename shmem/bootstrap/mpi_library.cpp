// SPDX-License-Identifier: Apache-2.0
// Finds the MPI plug-in.
#include <dlfcn.h>

#include <string>

#include "shmem/bootstrap/mpi.hpp"

namespace shmem {

namespace {

constexpr const char* kPlugin = "libshmem_bootstrap_mpi.so";

/// The plug-in beside the library that this code is in.
std::string beside_libshmem() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&beside_libshmem), &info) == 0 || info.dli_fname == nullptr) {
    return kPlugin;
  }
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? kPlugin : path.substr(0, slash + 1) + kPlugin;
}

tl::unexpected<Error> unusable(const std::string& path, const char* why) {
  return fail(std::errc::not_supported, "shmem: cannot start by MPI: " + std::string(why == nullptr ? path : why) +
                                            "; libshmem must be built where MPI is (Debian: libopenmpi-dev) to have " +
                                            kPlugin + ", or SHMEM_MPI_PLUGIN names one");
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_mpi_job(const std::string& plugin, const void* communicator,
                                                std::chrono::milliseconds limit) {
  const std::string path = plugin.empty() ? beside_libshmem() : plugin;
  // It stays: MPI keeps what belongs to its communicators.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unusable(path, ::dlerror());
  auto* const get = reinterpret_cast<shmem_mpi_plugin_function>(::dlsym(library, SHMEM_MPI_PLUGIN_SYMBOL));
  if (get == nullptr) return unusable(path, ::dlerror());
  return MpiBootstrap::join(*get(), communicator, limit);
}

}  // namespace shmem
