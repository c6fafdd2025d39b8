// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_open_mpi.hpp"

#include <dlfcn.h>

#include <string_view>

namespace shmem {

namespace {

/// Only the variable of Open MPI 5.0 and 6.0, since that of another release may begin differently.
PmixForOpenMpi::Process* process_of_open_mpi() {
  for (const char* const name : {"libopen-pal.so.80", "libopen-pal.so.40"}) {
    // Never closed, so that the variable stays.
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) {
      continue;
    }
    const auto* const found = static_cast<const char*>(::dlsym(library, "opal_version_string"));
    const std::string_view version = found == nullptr ? "" : found;
    if (version.starts_with("5.0.") || version.starts_with("6.0.")) {
      return static_cast<PmixForOpenMpi::Process*>(::dlsym(library, "opal_process_info"));
    }
  }
  return nullptr;
}

}  // namespace

void PmixForOpenMpi::init(decltype(&::PMIx_Init) pmix_init) {
  Process* const process = process_of_open_mpi();
  if (process == nullptr || process->pmix.nspace[0] != '\0') {
    return;
  }
  before_ = *process;
  if (pmix_init(&process->pmix, nullptr, 0) == PMIX_SUCCESS) {
    process_ = process;
  } else {
    process->pmix = before_.pmix;
  }
}

void PmixForOpenMpi::finalize(decltype(&::PMIx_Finalize) pmix_finalize) const {
  if (process_ != nullptr && process_->name == before_.name) {
    process_->pmix = before_.pmix;
    pmix_finalize(nullptr, 0);
  }
}

}  // namespace shmem
