// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_open_mpi.hpp"

#include <dlfcn.h>

#include <string_view>

namespace shmem {

namespace {

/// Only Open MPI 5.0's variable, since that of another release may begin differently.
PmixForOpenMpi::Process* process_of_open_mpi() {
  // Never closed, so that the variable stays.
  void* const library = ::dlopen("libopen-pal.so.80", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) {
    return nullptr;
  }
  const auto* const version = static_cast<const char*>(::dlsym(library, "opal_version_string"));
  if (version == nullptr || !std::string_view(version).starts_with("5.0.")) {
    return nullptr;
  }
  return static_cast<PmixForOpenMpi::Process*>(::dlsym(library, "opal_process_info"));
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
