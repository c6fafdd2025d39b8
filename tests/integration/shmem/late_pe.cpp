// SPDX-License-Identifier: Apache-2.0
// PEs that join the job. With an argument, all but PE 0 wait for PE 0, which never enters the barrier or signals.
//
//   late [barrier|signal]
#include "tests/integration/shmem/pe_checks.hpp"

PE_PART(late) {
  shmem_init();
  const char* what = argc > 1 ? argv[1] : "";
  auto* signal = what[0] != '\0' ? static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t))) : nullptr;
  if (signal != nullptr && shmem_my_pe() != 0) {
    std::printf("PE %d pid %d started\n", shmem_my_pe(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    if (std::strcmp(what, "barrier") == 0) {
      shmem_barrier_all();
    } else {
      shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
    }
  }
  ::sleep(600);  // the test ends it
  return 0;
}
