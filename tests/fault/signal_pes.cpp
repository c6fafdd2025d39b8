// SPDX-License-Identifier: Apache-2.0
// PE 0 stops PE 2, starts a put to it, and signals PE 1 with data: a signal waits for its own PE only. Three PEs.
#include <signal.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

bool is_stopped(long pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  stat >> number >> name >> state;
  return state == "T";
}

void stop(long pid) {
  ::kill(static_cast<pid_t>(pid), SIGSTOP);
  while (!is_stopped(pid)) {
    ::usleep(1000);
  }
}

}  // namespace

PE_PART(signal) {
  static std::uint64_t signal = 0;
  static std::uint64_t data = 0;
  static long pid = 0;
  constexpr std::uint64_t kData = 5;
  shmem_init();
  pid = ::getpid();
  // Connects PE 0 with the others.
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    shmem_uint64_p(&data, 1, 1);
    shmem_uint64_p(&data, 1, 2);
    shmem_quiet();
    const long other = shmem_long_g(&pid, 2);
    ::alarm(100);  // ends the job
    stop(other);
    shmem_uint64_put_nbi(&data, &kData, 1, 2);
    shmem_uint64_put_signal(&data, &kData, 1, &signal, 7, SHMEM_SIGNAL_SET, 1);
    ::alarm(0);
    std::printf("sent\n");
    std::fflush(stdout);
    ::kill(static_cast<pid_t>(other), SIGCONT);
  }
  if (shmem_my_pe() == 1) {
    shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 7);
    std::printf(data == kData ? "signalled\n" : "too early\n");
    std::fflush(stdout);
  }
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
