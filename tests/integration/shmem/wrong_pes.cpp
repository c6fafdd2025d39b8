// SPDX-License-Identifier: Apache-2.0
// A PE that makes one mistake, named by its argument.
#include <shmem.h>
#include <shmem_device.h>
#include <shmemx.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  const std::string mistake = argc > 1 ? argv[1] : "";
  if (mistake == "before-init") {
    shmem_barrier_all();
  }
  shmem_init();
  if (mistake == "nested") {
    shmem_init();
    shmem_finalize();
    shmem_barrier_all();
    std::printf("PE %d still runs\n", shmem_my_pe());
    shmem_finalize();
    shmem_barrier_all();
  }
  const int me = shmem_my_pe();
  auto* word = static_cast<std::uint64_t*>(shmem_malloc(64));
  std::uint64_t local = 0;
  if (mistake == "heap-full") {
    const bool null = shmem_malloc(std::size_t{1} << 30) == nullptr && shmem_calloc(SIZE_MAX, 2) == nullptr;
    std::printf("PE %d got %s\n", me, null ? "NULL" : "a block");
  } else if (mistake == "malloc-sizes") {
    if (shmem_malloc(me == 1 ? 4096 : 64) == nullptr) {
      std::printf("PE %d got NULL\n", me);
      return 3;
    }
  } else if (mistake == "put-pe") {
    shmem_putmem(word, &local, 8, shmem_n_pes());
  } else if (mistake == "put-address") {
    shmem_putmem(&local, word, 8, 0);
  } else if (mistake == "put-size") {
    shmem_putmem(word, &local, SIZE_MAX, 0);
  } else if (mistake == "signal-pe") {
    shmem_signal_set(word, 1, -1);
  } else if (mistake == "compare") {
    shmem_signal_wait_until(word, 6, 1);
  } else if (mistake == "free") {
    shmem_free(&local);
  } else if (mistake == "free-global") {
    static std::uint64_t global = 0;
    shmem_free(&global);
  } else if (mistake == "free-on-one") {
    shmem_free(me == 1 ? static_cast<void*>(&local) : word);
  } else if (mistake == "free-alone") {
    if (me == 1) {
      shmem_free(word);
    }
    shmem_barrier_all();
  } else if (mistake == "free-or-malloc") {
    if (me == 1) {
      shmem_free(word);
    }
    shmem_malloc(8);
  } else if (mistake == "realloc-sizes") {
    if (shmem_realloc(word, me == 1 ? 100 : 200) == nullptr) {
      return 3;
    }
  } else if (mistake == "heap-full") {
    if (shmem_malloc(std::size_t{1} << 40) == nullptr) {
      return 3;
    }
  } else if (mistake == "double-free") {
    shmem_free(word);
    shmem_free(word);
  } else if (mistake == "destroy-world") {
    shmem_team_destroy(SHMEM_TEAM_WORLD);
  } else if (mistake == "barrier-team") {
    shmem_barrier(17);
  } else if (mistake == "set-alone" && me == 1) {
    static long psync[SHMEM_BARRIER_SYNC_SIZE] = {};
    (shmem_barrier)(0, 0, shmem_n_pes(), psync);
  } else if (mistake.starts_with("set-without-") && me != 3) {
    static long psync[SHMEM_REDUCE_SYNC_SIZE] = {};
    static int sum = 0, one = 1, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1] = {};
    if (mistake == "set-without-3-in-barrier") {
      (shmem_barrier)(0, 0, shmem_n_pes(), psync);
    } else if (me % 2 == 1) {
      shmem_int_sum_to_all(&sum, &one, 1, 1, 1, shmem_n_pes() / 2, work, psync);
    }
    std::this_thread::sleep_for(std::chrono::seconds(60));  // of those that are not in the set
  } else if (mistake == "wait-alone" && me == 1) {
    shmem_signal_wait_until(word, SHMEM_CMP_GE, 5);
  } else if (mistake == "wait-alone-in-array" && me == 1) {
    static long words[3] = {0, -7, 0};
    shmem_long_wait_until_all(words, 3, nullptr, SHMEM_CMP_EQ, 0);
  } else if (mistake == "wait-alone-on-core" && me == 1) {
    const shmemx_kernel_t wait = [](shmemx_core_t*, void* mine) {
      shmem_uint64_wait_until(static_cast<std::uint64_t*>(mine), SHMEM_CMP_NE, 0);
    };
    return shmemx_launch(1, wait, word) == 0 ? 0 : 3;
  } else if (mistake.starts_with("set-") || mistake.starts_with("wait-alone")) {
    std::this_thread::sleep_for(std::chrono::seconds(60));  // not in a call that would time out as well
  } else if (mistake == "lock-kept") {
    static long lock = 0;
    if (me == 0) {
      shmem_set_lock(&lock);
    }
    shmem_barrier_all();
    if (me == 1) {
      shmem_set_lock(&lock);
    }
    std::this_thread::sleep_for(std::chrono::seconds(60));
  } else if (mistake == "barrier-while-open") {
    shmemx_barrier_arrive(SHMEM_TEAM_WORLD);
    shmem_barrier_all();
  } else if (mistake == "finalize-while-open") {
    shmemx_barrier_arrive(SHMEM_TEAM_WORLD);
  } else if (mistake == "global-exit-0") {  // not an error
    shmemx_set_logger([](int level, const char* text) { std::printf("level %d: %s\n", level, text); });
    if (me == 1) {
      shmem_global_exit(0);
    }
    shmem_barrier_all();
  } else if (mistake == "global-exit") {
    if (me == 1) {
      shmem_global_exit(9);
    }
    shmem_barrier_all();
  } else if (mistake == "forked") {
    const pid_t child = ::fork();
    if (child == 0) {
      shmem_barrier_all();
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  } else if (mistake == "vanish") {
    if (me == 1) {
      ::_exit(0);
    }
    shmem_barrier_all();
  } else if (mistake == "exit-early") {
    if (me == 1) {
      return 5;
    }
    shmem_barrier_all();
  }
  if (mistake == "no-finalize") {
    return 0;
  }
  shmem_finalize();
  if (mistake == "after-finalize") {
    shmem_barrier_all();
  }
  return 0;
}
