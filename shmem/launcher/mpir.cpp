// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/mpir.hpp"

// Names, types and layout are those of "The MPIR Process Acquisition Interface", version 1.1.
// NOLINTBEGIN(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern "C" {

struct MPIR_PROCDESC {
  const char* host_name;
  const char* executable_name;
  int pid;
};

#pragma GCC visibility push(default)
// A debugger looks for these in the symbols of oshrun and reads them from outside; it sets the first.
volatile int MPIR_being_debugged = 0;
volatile int MPIR_debug_state = 0;  // 1: MPIR_proctable is filled
MPIR_PROCDESC* MPIR_proctable = nullptr;
volatile int MPIR_proctable_size = 0;
volatile int MPIR_partial_attach_ok = 1;  // oshrun releases the PEs, also those without a debugger
volatile int MPIR_i_am_starter = 1;       // oshrun is not one of the processes

/// Debuggers set a breakpoint here.
[[gnu::noinline]] void MPIR_Breakpoint() {
  asm volatile("" ::: "memory");
}
#pragma GCC visibility pop

}  // extern "C"
// NOLINTEND(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)

namespace shmem::launcher {

bool is_being_debugged() {
  return MPIR_being_debugged != 0;
}

void publish_to_debuggers(std::vector<MpirProcess> pes) {
  // Up to the end of oshrun: a debugger may attach at any time.
  static std::vector<MpirProcess> kept;
  static std::vector<MPIR_PROCDESC> table;
  kept = std::move(pes);
  table.clear();
  for (const MpirProcess& pe : kept) {
    table.push_back({pe.host.c_str(), pe.program.c_str(), pe.pid});
  }
  MPIR_proctable = table.data();
  MPIR_proctable_size = static_cast<int>(table.size());
  MPIR_debug_state = 1;
  if (is_being_debugged()) {
    MPIR_Breakpoint();
  }
}

}  // namespace shmem::launcher
