// SPDX-License-Identifier: Apache-2.0
// A PE that makes one mistake, named by its argument.
#include <shmem_device.h>
#include <shmemx_interface.h>
#include <sys/wait.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

/// A symmetric block of 64 bytes, and a word that is not symmetric.
struct Words {
  std::uint64_t* block = nullptr;
  std::uint64_t local = 0;
};

/// What the process ends with; nothing: it goes on to shmem_finalize.
using Ending = std::optional<int>;

struct Mistake {
  std::string_view name;
  Ending (*make)(Words& words);
};

int me() {
  return shmem_my_pe();
}

/// For PEs that must not be in a call that would time out as well.
void stay() {
  std::this_thread::sleep_for(std::chrono::seconds(600));
}

Ending nested() {
  shmem_init();
  shmem_finalize();
  shmem_barrier_all();
  std::printf("PE %d still runs\n", me());
  shmem_finalize();
  shmem_barrier_all();
  return {};
}

Ending different_sizes() {
  if (shmem_malloc(me() == 1 ? 4096 : 64) != nullptr) {
    return {};
  }
  std::printf("PE %d got NULL\n", me());
  return 3;
}

Ending full_heap_that_is_survived() {
  const bool null = shmem_malloc(std::size_t{1} << 30) == nullptr && shmem_calloc(SIZE_MAX, 2) == nullptr;
  std::printf("PE %d got %s\n", me(), null ? "NULL" : "a block");
  return {};
}

Ending free_or_malloc(const Words& words) {
  if (me() == 1) {
    shmem_free(words.block);
  }
  shmem_malloc(8);
  return {};
}

Ending free_alone(const Words& words) {
  if (me() == 1) {
    shmem_free(words.block);
  }
  shmem_barrier_all();
  return {};
}

Ending barrier_of_a_set_alone() {
  if (me() == 1) {
    static long psync[SHMEM_BARRIER_SYNC_SIZE] = {};
    (shmem_barrier)(0, 0, shmem_n_pes(), psync);
    return {};
  }
  stay();
  return {};
}

Ending barrier_of_a_set_without_3() {
  if (me() != 3) {
    static long psync[SHMEM_BARRIER_SYNC_SIZE] = {};
    (shmem_barrier)(0, 0, shmem_n_pes(), psync);
  }
  stay();
  return {};
}

Ending sum_of_a_set_without_3() {
  if (me() != 3 && me() % 2 == 1) {
    static long psync[SHMEM_REDUCE_SYNC_SIZE] = {};
    static int sum = 0, one = 1, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1] = {};
    shmem_int_sum_to_all(&sum, &one, 1, 1, 1, shmem_n_pes() / 2, work, psync);
  }
  stay();
  return {};
}

/// Open MPI's header has another value for words of pSync.
Ending sum_with_words_of_another_header() {
  static long psync[SHMEM_REDUCE_SYNC_SIZE];
  static int sum = 0, one = 1, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1] = {};
  std::fill(std::begin(psync), std::end(psync), -1L);
  shmem_barrier_all();
  shmem_int_sum_to_all(&sum, &one, 1, 0, 0, shmem_n_pes(), work, psync);
  return {};
}

Ending wait_alone(Words& words) {
  if (me() == 1) {
    shmem_signal_wait_until(words.block, SHMEM_CMP_GE, 5);
    return {};
  }
  stay();
  return {};
}

Ending wait_alone_in_an_array() {
  if (me() == 1) {
    static long array[3] = {0, -7, 0};
    shmem_long_wait_until_all(array, 3, nullptr, SHMEM_CMP_EQ, 0);
    return {};
  }
  stay();
  return {};
}

Ending wait_alone_on_a_core(const Words& words) {
  if (me() == 1) {
    const shmemx_kernel_t wait = [](shmemx_core_t*, void* mine) {
      shmem_uint64_wait_until(static_cast<std::uint64_t*>(mine), SHMEM_CMP_NE, 0);
    };
    return shmemx_launch(1, wait, words.block) == 0 ? 0 : 3;
  }
  stay();
  return {};
}

Ending kept_lock() {
  static long lock = 0;
  if (me() == 0) {
    shmem_set_lock(&lock);
  }
  shmem_barrier_all();
  if (me() == 1) {
    shmem_set_lock(&lock);
  }
  stay();
  return {};
}

Ending global_exit(int status) {
  if (me() == 1) {
    shmem_global_exit(status);
  }
  shmem_barrier_all();
  return {};
}

Ending global_exit_0() {  // not an error
  shmemx_set_logger([](int level, const char* text) { std::printf("level %d: %s\n", level, text); });
  return global_exit(0);
}

Ending forked() {
  const pid_t child = ::fork();
  if (child == 0) {
    shmem_barrier_all();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

Ending vanish() {
  static int waits = 0;  // PE 0 does, almost: it looks for PE 1 before oshrun gives the two up
  if (me() == 1) {
    shmem_int_wait_until(&waits, SHMEM_CMP_EQ, 1);
    ::_exit(0);
  }
  shmem_int_p(&waits, 1, 1);
  shmem_barrier_all();
  return {};
}

Ending exit_early() {
  if (me() == 1) {
    return 5;
  }
  shmem_barrier_all();
  return {};
}

/// A mistake that is one call.
#define SHMEM_TEST_CALL(NAME, CALL) \
  {                                 \
    NAME, [](Words& words) {        \
      static_cast<void>(words);     \
      CALL;                         \
      return Ending();              \
    }                               \
  }
#define SHMEM_TEST_FUNCTION(NAME, CALL)                                \
  {                                                                    \
    NAME, []([[maybe_unused]] Words& words) -> Ending { return CALL; } \
  }

std::uint64_t global_word = 0;

Ending make_calls_that_are_counted(const Words& words) {
  static std::array<char, 100> room;
  const std::array<char, 100> text{};
  const int other = (me() + 1) % shmem_n_pes();
  const std::uint64_t value = 1;
  for (int i = 0; i < 3; ++i) {
    shmem_uint64_put(words.block, &value, 1, other);
  }
  shmem_putmem(room.data(), text.data(), text.size(), other);
  int got = 0;
  shmem_int_get(&got, reinterpret_cast<int*>(words.block + 1), 1, other);
  got += shmem_int_g(reinterpret_cast<int*>(words.block + 1), other);
  for (int i = 0; i < 5; ++i) {
    shmem_uint64_atomic_inc(words.block + 2, other);
  }
  shmem_broadcastmem(SHMEM_TEAM_WORLD, words.block + 4, words.block + 6, 16, 0);
  return {};
}

constexpr Mistake kMistakes[] = {
    SHMEM_TEST_FUNCTION("nested", nested()),
    SHMEM_TEST_FUNCTION("malloc-sizes", different_sizes()),
    SHMEM_TEST_CALL("put-pe", shmem_putmem(words.block, &words.local, 8, shmem_n_pes())),
    SHMEM_TEST_CALL("put-address", shmem_putmem(&words.local, words.block, 8, 0)),
    SHMEM_TEST_CALL("put-size", shmem_putmem(words.block, &words.local, SIZE_MAX, 0)),
    SHMEM_TEST_CALL("signal-pe", shmem_signal_set(words.block, 1, -1)),
    SHMEM_TEST_CALL("compare", shmem_signal_wait_until(words.block, 6, 1)),
    SHMEM_TEST_CALL("free", shmem_free(&words.local)),
    SHMEM_TEST_CALL("free-global", shmem_free(&global_word)),
    SHMEM_TEST_CALL("free-on-one", shmem_free(me() == 1 ? &words.local : words.block)),
    SHMEM_TEST_FUNCTION("free-alone", free_alone(words)),
    SHMEM_TEST_FUNCTION("free-or-malloc", free_or_malloc(words)),
    SHMEM_TEST_FUNCTION("realloc-sizes",
                        shmem_realloc(words.block, me() == 1 ? 100 : 200) == nullptr ? Ending(3) : Ending()),
    SHMEM_TEST_FUNCTION("heap-full", shmem_malloc(std::size_t{1} << 40) == nullptr ? Ending(3) : Ending()),
    SHMEM_TEST_FUNCTION("full-heap", full_heap_that_is_survived()),
    SHMEM_TEST_CALL("double-free", shmem_free(words.block); shmem_free(words.block)),
    SHMEM_TEST_CALL("destroy-world", shmem_team_destroy(SHMEM_TEAM_WORLD)),
    SHMEM_TEST_CALL("barrier-team", shmem_barrier(shmemx_team_by_number(17))),
    SHMEM_TEST_CALL("barrier-no-team", shmem_barrier(SHMEM_TEAM_INVALID)),
    SHMEM_TEST_CALL("barrier-other-pointer", shmem_barrier(reinterpret_cast<shmem_team_t>(words.block))),
    SHMEM_TEST_FUNCTION("set-alone", barrier_of_a_set_alone()),
    SHMEM_TEST_FUNCTION("set-without-3-in-barrier", barrier_of_a_set_without_3()),
    SHMEM_TEST_FUNCTION("set-without-3-in-sum", sum_of_a_set_without_3()),
    SHMEM_TEST_FUNCTION("set-words", sum_with_words_of_another_header()),
    SHMEM_TEST_FUNCTION("wait-alone", wait_alone(words)),
    SHMEM_TEST_FUNCTION("wait-alone-in-array", wait_alone_in_an_array()),
    SHMEM_TEST_FUNCTION("wait-alone-on-core", wait_alone_on_a_core(words)),
    SHMEM_TEST_FUNCTION("lock-kept", kept_lock()),
    SHMEM_TEST_CALL("barrier-while-open", shmemx_barrier_arrive(SHMEM_TEAM_WORLD); shmem_barrier_all()),
    SHMEM_TEST_CALL("finalize-while-open", shmemx_barrier_arrive(SHMEM_TEAM_WORLD)),
    SHMEM_TEST_FUNCTION("global-exit-0", global_exit_0()),
    SHMEM_TEST_FUNCTION("global-exit", global_exit(9)),
    SHMEM_TEST_FUNCTION("forked", forked()),
    SHMEM_TEST_FUNCTION("vanish", vanish()),
    SHMEM_TEST_FUNCTION("exit-early", exit_early()),
    SHMEM_TEST_FUNCTION("counted", make_calls_that_are_counted(words)),
    SHMEM_TEST_FUNCTION("no-finalize", Ending(0)),
    SHMEM_TEST_CALL("after-finalize", shmem_finalize(); shmem_barrier_all()),
    SHMEM_TEST_FUNCTION("nothing", Ending()),
    SHMEM_TEST_FUNCTION("", Ending()),
};

}  // namespace

PE_PART(wrong) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "before-init") {
    shmem_barrier_all();
  }
  const auto* const mistake = std::ranges::find(kMistakes, name, &Mistake::name);
  if (mistake == std::end(kMistakes)) {
    std::fprintf(stderr, "wrong_pes: no such mistake: %s\n", argv[1]);
    return 2;
  }
  shmem_init();
  Words words{.block = static_cast<std::uint64_t*>(shmem_malloc(64))};
  const Ending ending = mistake->make(words);
  if (ending) {
    return *ending;
  }
  shmem_finalize();
  return 0;
}
