// SPDX-License-Identifier: Apache-2.0
#include "shmem/info/libraries.hpp"

#include <dlfcn.h>

namespace shmem_info {

namespace {

/// The function `name` of `file`, or nullptr with a problem. The library stays loaded: UCX has threads.
template <typename Function>
Function find(LoadedLibrary& library, const char* name) {
  void* handle = ::dlopen(library.file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* function = handle != nullptr ? ::dlsym(handle, name) : nullptr;
  if (function == nullptr) {
    const char* why = ::dlerror();
    library.problem = why != nullptr ? why : "no reason given";
  }
  return reinterpret_cast<Function>(function);
}

}  // namespace

LoadedLibrary find_ucx() {
  LoadedLibrary library{"libucp.so.0", "", ""};
  if (auto* const version = find<const char* (*)()>(library, "ucp_get_version_string")) {
    library.version = version();
  }
  return library;
}

LoadedLibrary find_pmix() {
  LoadedLibrary library{"libpmix.so.2", "", ""};
  if (auto* const version = find<const char* (*)()>(library, "PMIx_Get_version")) {
    library.version = version();
  }
  return library;
}

}  // namespace shmem_info
