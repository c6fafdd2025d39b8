// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/mpi_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/regular_file.hpp"
#include "shmem/bootstrap/mpi/make.hpp"

namespace shmem {

namespace {

struct Closer {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

struct LoadedMpi {
  std::string version;  // "": no MPI
  bool initialised = false;
};

/// The MPI whose routines are found through a handle of dlopen. Both may be called before MPI_Init.
LoadedMpi mpi_in(void* handle) {
  auto* const get_version = reinterpret_cast<int (*)(char*, int*)>(::dlsym(handle, "MPI_Get_library_version"));
  auto* const get_initialised = reinterpret_cast<int (*)(int*)>(::dlsym(handle, "MPI_Initialized"));
  std::vector<char> text(kMpiVersionRoom);
  int length = 0;
  int flag = 0;
  if (get_version == nullptr || get_initialised == nullptr || get_version(text.data(), &length) != 0 ||
      get_initialised(&flag) != 0) {
    return {};
  }
  std::string version(text.data());
  version.erase(std::min(version.find('\n'), version.size()));
  std::ranges::replace(version, '\t', ' ');
  return {mpi_description(std::move(version), get_version), flag != 0};
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

/// Installed, libshmem's plug-ins are in the folder libshmem/ next to the library; in a build tree, next to it.
std::string own_plugin(const std::string& name) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_plugin), &info) == 0 || info.dli_fname == nullptr) {
    return name;
  }
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) {
    return name;
  }
  const std::string folder = path.substr(0, slash + 1);
  const std::string installed = folder + "libshmem/" + name;
  return ::access(installed.c_str(), F_OK) == 0 ? installed : folder + name;
}

Error unusable(const std::string& why, const std::string& advice) {
  return fail(std::errc::not_supported, fmt::format("shmem: cannot start by MPI: {}; {}", why, advice));
}

/// What to do if libshmem's own plug-in is missing.
std::string advice_for(const std::string& version) {
  const auto make = mpi_make(version);
  if (make == "abi") {
    return fmt::format(
        "this process uses {}: install the package libshmem-mpi-abi, or build libshmem with libmpi_abi (Debian: "
        "libmpich-dev 5)",
        version);
  }
  if (make == "openmpi") {
    return fmt::format(
        "this process uses {}: install the package libshmem-mpi, or build libshmem with Open MPI "
        "(Debian: libopenmpi-dev)",
        version);
  }
  if (make == "mpich") {
    return fmt::format(
        "this process uses {}: install the package libshmem-mpich, or build libshmem with MPICH "
        "(Debian: libmpich-dev)",
        version);
  }
  return fmt::format("this process uses {}: build libshmem with that MPI, or set SHMEM_MPI_PLUGIN", version);
}

Result<const shmem_mpi_plugin*> load(const std::string& path, const std::string& advice) {
  // To load a FIFO would mean to wait for its writer.
  if (const auto file = base::open_regular_file(path);
      path.find('/') != std::string::npos && !file && file.error().code == std::errc::invalid_argument) {
    return unusable(path + ": " + file.error().text, advice);
  }
  // It stays loaded: MPI keeps what belongs to its communicators.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : ::dlsym(library, SHMEM_MPI_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    const char* why = ::dlerror();
    return unusable(why == nullptr ? path : why, advice);
  }
  return reinterpret_cast<shmem_mpi_plugin_function>(symbol)();
}

}  // namespace

std::string loaded_mpi() {
  // What the program is linked with comes first: the plug-in is bound to that, too.
  LoadedMpi found = mpi_in(RTLD_DEFAULT);
  for (const std::string& name : loaded_libraries()) {
    if (found.initialised) {
      break;
    }
    const Library library(name.empty() ? nullptr : ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    if (!library) {
      continue;
    }
    LoadedMpi other = mpi_in(library.get());
    if (found.version.empty() || other.initialised) {
      found = std::move(other);
    }
  }
  return found.version;
}

std::string mpi_plugin_name(const std::string& version) {
  return fmt::format("libshmem_bootstrap_{}.so", mpi_make(version));
}

Result<const shmem_mpi_plugin*> load_mpi_plugin(const std::string& path) {
  if (!path.empty()) {
    return load(path, "SHMEM_MPI_PLUGIN must name a plug-in of libshmem, or be unset");
  }
  const std::string version = loaded_mpi();
  if (version.empty()) {
    return unusable("this process has loaded no MPI",
                    "link the program with MPI and call MPI_Init before libshmem is started, or start it without MPI "
                    "(oshrun, mpirun, srun)");
  }
  return load(own_plugin(mpi_plugin_name(version)), advice_for(version));
}

}  // namespace shmem
