// SPDX-License-Identifier: Apache-2.0
// PE 1 calls exit() in the middle of something, and the other PEs wait for it: exit WAY STATUS [LIBRARY].
#include <dlfcn.h>
#include <shmem_device.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

int status = 0;
long* words = nullptr;
constexpr std::size_t kWords = 1 << 16;

void use_the_library() {
  const int other = (shmem_my_pe() + 1) % shmem_n_pes();
  for (long i = 0;; ++i) {
    shmem_long_p(&words[i % kWords], i, other);
    shmem_long_atomic_add(&words[0], 1, other);
    shmem_quiet();
  }
}

/// Never waited for: they are in the library when the process ends.
void start_users(int count) {
  for (int i = 0; i < count; ++i) {
    std::thread(use_the_library).detach();
  }
  ::usleep(20000);
}

const shmemx_kernel_t kExitOnCore = [](shmemx_core_t* core, void* /*argument*/) {
  if (shmemx_core_index(core) == 1) {
    std::exit(status);
  }
  shmemx_core_sync(core);
};

void exit_while_a_stream_waits(bool for_barrier) {
  if (for_barrier) {
    shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, nullptr);
  } else {
    auto* signal = reinterpret_cast<std::int32_t*>(words);
    shmemx_signal32_wait_until_on_stream(signal, SHMEM_CMP_NE, 0, nullptr);
  }
  ::usleep(20000);
  std::exit(status);
}

void exit_on_a_stream() {
  const shmemx_kernel_t leave = [](shmemx_core_t* /*core*/, void* /*argument*/) { std::exit(status); };
  shmemx_launch_on_stream(1, leave, nullptr, nullptr);
  shmemx_stream_synchronize(nullptr);
}

void exit_in_a_thread() {
  std::thread([] {
    ::usleep(20000);
    std::exit(status);
  }).detach();
  shmem_barrier_all();
  ::pause();
}

std::atomic<bool> is_over{false};
std::thread worker;

/// Registered before the library starts, and so runs after the library's own handler: the thread goes on until then.
void wait_for_worker_at_exit() {
  std::atexit([] {
    is_over = true;
    if (worker.joinable()) {
      worker.join();
    }
  });
}

void start_worker() {
  worker = std::thread([] {
    while (!is_over) {
      shmem_long_p(&words[1], 1, 0);
      shmem_quiet();
    }
  });
}

/// In the library, which ends the PE with the job. PE 1 may be in the first one.
[[noreturn]] void wait_in_barriers() {
  for (;;) {
    shmem_barrier_all();
  }
}

/// Made before the library starts, and so destroyed after its own exit handler.
struct PrintedAtTheEnd {
  ~PrintedAtTheEnd() {
    if (status != 0) {
      std::printf("destroyed\n");
    }
  }
} printed_at_the_end;

}  // namespace

PE_PART(exit) {
  if (argc < 3) {
    return 2;
  }
  const int wanted = std::atoi(argv[2]);
  wait_for_worker_at_exit();
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  words = static_cast<long*>(shmem_calloc(kWords, sizeof(long)));
  if (shmem_my_pe() != 1) {
    wait_in_barriers();
  }
  status = wanted;
  if (argc > 3 && ::dlopen(argv[3], RTLD_NOW) == nullptr) {
    return 2;
  }
  pe_checks::act(argv[1], {{"main", [] {}},
                           {"stream-word", [] { exit_while_a_stream_waits(false); }},
                           {"stream-barrier", [] { exit_while_a_stream_waits(true); }},
                           {"on-stream", exit_on_a_stream},
                           {"on-core", [] { shmemx_launch(2, kExitOnCore, nullptr); }},
                           {"in-thread", exit_in_a_thread},
                           {"beside-threads", [] { start_users(2); }},
                           {"handler", start_worker}});
  return status;
}

/// All PEs return from main with status 0 while threads of theirs use the library.
PE_PART(exit_all) {
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  words = static_cast<long*>(shmem_calloc(kWords, sizeof(long)));
  start_users(2);
  return 0;
}
