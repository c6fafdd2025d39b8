// SPDX-License-Identifier: Apache-2.0
// MPI_Init of Open MPI 5.0 and 6.0 after libshmem's start by PMIx.
#pragma once

#include <pmix.h>

#include <array>
#include <cstdint>

namespace shmem {

/// If a process has called PMIx_Init, MPI_Init of Open MPI from 5.0 on leaves that call out, though only the call tells
/// it the process's name: it ends with 'local rank --> Returned "Not found"'. MPI_Finalize calls PMIx_Finalize all the
/// same. So libshmem calls PMIx_Init once more in Open MPI's place, if Open MPI is loaded and has not started.
class PmixForOpenMpi {
 public:
  /// After PMIx_Init.
  void init(decltype(&::PMIx_Init) pmix_init);
  /// Before PMIx_Finalize. Takes init() back, unless Open MPI has started since and so calls PMIx_Finalize itself.
  void finalize(decltype(&::PMIx_Finalize) pmix_finalize) const;

  /// How struct opal_process_info_t begins in opal/util/proc.h of Open MPI 5.0 and 6.0, whose components depend on that
  /// too.
  struct Process {
    std::array<std::uint32_t, 2> name;  // Open MPI's own number for `pmix`, from MPI_Init on
    pmix_proc_t pmix;                   // what PMIx_Init returned
  };

 private:
  Process* process_ = nullptr;  // Open MPI's variable, if init() called PMIx_Init
  Process before_{};
};

}  // namespace shmem
