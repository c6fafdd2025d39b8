// SPDX-License-Identifier: Apache-2.0
// Finds the MPI plug-in.
#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "shmem/bootstrap/mpi.hpp"

namespace shmem {

namespace {

constexpr const char* kPlugin = "libshmem_bootstrap_mpi.so";

/// The plug-in of the library that this code is in: installed, in a folder of libshmem's own; in a build tree, beside
/// it.
std::string own_plugin() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_plugin), &info) == 0 || info.dli_fname == nullptr) {
    return kPlugin;
  }
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return kPlugin;
  const std::string folder = path.substr(0, slash + 1);
  const std::string installed = folder + "libshmem/" + kPlugin;
  return ::access(installed.c_str(), F_OK) == 0 ? installed : folder + kPlugin;
}

tl::unexpected<Error> unusable(const std::string& path, const char* why) {
  return fail(std::errc::not_supported, "shmem: cannot start by MPI: " + std::string(why == nullptr ? path : why) +
                                            "; the package libshmem-mpi has " + kPlugin +
                                            ", as has a build where MPI is (Debian: libopenmpi-dev), or "
                                            "SHMEM_MPI_PLUGIN names one");
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_mpi_job(const std::string& plugin, const void* communicator,
                                                std::chrono::milliseconds limit) {
  const std::string path = plugin.empty() ? own_plugin() : plugin;
  // It stays: MPI keeps what belongs to its communicators.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unusable(path, ::dlerror());
  auto* const get = reinterpret_cast<shmem_mpi_plugin_function>(::dlsym(library, SHMEM_MPI_PLUGIN_SYMBOL));
  if (get == nullptr) return unusable(path, ::dlerror());
  return MpiBootstrap::join(*get(), communicator, limit);
}

}  // namespace shmem
