// SPDX-License-Identifier: Apache-2.0
// A PE that makes the calls of shmem.h and shmemx.h, one family at a time, in C++ with its overloads. Prints failures;
// exits with 0 if there are none.
#include <shmemx_interface.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

using pe_checks::allocate;

/// A handle that is no team's.
const shmem_team_t kNoTeam = shmemx_team_by_number(42);

int global_word = 0;

void queries(int me, int pes) {
  int provided = -1;
  int initialized = 0;
  shmem_query_thread(&provided);
  shmem_query_initialized(&initialized);
  CHECK(provided == SHMEM_THREAD_MULTIPLE && initialized == 1);
  CHECK(shmem_pe_accessible(pes - 1) == 1 && shmem_pe_accessible(pes) == 0 && shmem_pe_accessible(-1) == 0);
  int major = 0;
  int minor = 0;
  std::array<char, SHMEM_MAX_NAME_LEN> name{};
  shmem_info_get_version(&major, &minor);
  shmem_info_get_name(name.data());
  CHECK(major == 1 && minor == 6 && std::strncmp(name.data(), "libshmem", 8) == 0);
  int local = 0;
  auto* word = allocate<std::uint64_t>();
  CHECK(shmem_addr_accessible(word, 0) == 1 && shmem_addr_accessible(&local, 0) == 0);
  CHECK(shmem_ptr(word, me) == word && shmem_ptr(&local, 0) == nullptr && shmem_ptr(word, pes) == nullptr);
  CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, word, me) == word);
  shmem_free(word);
}

void heap() {
  CHECK(shmem_malloc(0) == nullptr);
  auto* aligned = static_cast<std::byte*>(shmem_align(8192, 100));
  auto* zeroed = static_cast<unsigned char*>(shmem_calloc(100, 10));
  CHECK(aligned != nullptr && zeroed != nullptr && zeroed[999] == 0);
  CHECK((aligned - static_cast<std::byte*>(shmem_ptr(aligned, shmem_my_pe()))) == 0);
  CHECK(shmem_calloc(SIZE_MAX, 2) == nullptr);
  CHECK(shmem_malloc(SIZE_MAX) == nullptr);
  shmemx_heap_stats_t stats;
  CHECK(shmemx_heap_stats(&stats) == 0 && stats.live_blocks == 2 && stats.used == 128 + 1024);
  CHECK(stats.size == std::size_t{1} << 30 && stats.largest_free < stats.size);
  CHECK(shmemx_heap_stats(nullptr) != 0);
  zeroed[999] = 7;
  zeroed = static_cast<unsigned char*>(shmem_realloc(zeroed, 100000));
  CHECK(zeroed != nullptr && zeroed[999] == 7);
  void* hinted = shmem_malloc_with_hints(8, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(hinted != nullptr);
  hinted = shrealloc(hinted, 16);
  shfree(hinted);
  void* old = shmalloc(100);
  CHECK(old != nullptr && shmemalign(64, 0) == nullptr);
  shfree(old);
  shmem_free(zeroed);
  shmem_free(aligned);
  shmem_free(nullptr);
}

void transfers(int me, int pes) {
  const int right = (me + 1) % pes;
  const int left = (me + pes - 1) % pes;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000}, std::size_t{100001}}) {
    auto* here = static_cast<unsigned char*>(shmem_malloc(size + 1));
    std::vector<unsigned char> from(size + 1, static_cast<unsigned char>(me + 1));
    std::vector<unsigned char> back(size + 1);
    std::memset(here, 0, size + 1);
    shmem_barrier_all();
    shmem_putmem(here, from.data(), size, right);
    shmem_barrier_all();
    bool same = here[size] == 0;
    for (std::size_t i = 0; i < size; ++i) {
      same = same && here[i] == left + 1;
    }
    CHECK(same);
    shmem_getmem(back.data(), here, size, right);
    CHECK(size == 0 || back[size - 1] == me + 1);
    shmem_free(here);
  }
}

void signals(int me, int pes) {
  const int right = (me + 1) % pes;
  auto* signal = allocate<std::uint64_t>();
  auto* signal32 = allocate<std::int32_t>();
  auto* data = allocate<std::uint64_t>();
  for (std::uint64_t k = 1; k <= 200; ++k) {
    const std::uint64_t value = k * 1000 + static_cast<std::uint64_t>(me);
    shmem_putmem(data, &value, sizeof value, right);
    shmem_fence();
    shmem_signal_set(signal, k, right);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, k) >= k);
    CHECK(*data == k * 1000 + static_cast<std::uint64_t>((me + pes - 1) % pes));
    shmem_barrier_all();
  }
  CHECK(shmem_signal_fetch(signal) == 200);
  shmem_barrier_all();
  shmem_signal_add(signal, 5, right);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 205) == 205);
  // Ascend's forms, which the type of the signal selects.
  shmem_signal_set(signal32, -7, right);
  CHECK(shmem_signal_wait_until(signal32, SHMEM_CMP_LT, 0) == -7);
  shmem_barrier_all();
  shmem_signal_add(signal32, 8, right);
  CHECK(shmem_signal_wait_until(signal32, SHMEM_CMP_NE, -7) == 1);
  CHECK(shmem_signal_fetch(signal32) == 1);
  shmem_free(data);
  shmem_free(signal32);
  shmem_free(signal);
}

/// The PEs whose memory this PE can load and store.
int pes_of_this_node(int pes) {
  auto* word = allocate<int>();
  int count = 0;
  for (int pe = 0; pe < pes; ++pe) {
    count += shmem_ptr(word, pe) != nullptr ? 1 : 0;
  }
  shmem_free(word);
  return count;
}

void teams(int me, int pes) {
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes_of_this_node(pes));
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(kNoTeam) == -1);
  CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0);

  shmem_team_t even = kNoTeam;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, nullptr, 0, &even) == 0);
  CHECK((even == SHMEM_TEAM_INVALID) == (me % 2 != 0));
  CHECK(shmem_team_my_pe(even) == (me % 2 == 0 ? me / 2 : -1));
  if (even != SHMEM_TEAM_INVALID) {
    CHECK(shmem_team_translate_pe(even, 0, SHMEM_TEAM_WORLD) == 0);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, even) == -1);
    for (int i = 0; i < 100; ++i) {
      CHECK(shmem_team_sync(even) == 0);
      shmem_barrier(even);
    }
    shmem_team_t nested = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(even, 0, 1, 1, &nested) == 0);  // Ascend's form
    CHECK(shmem_team_n_pes(nested) == (me == 0 ? 1 : -1));
    shmem_team_destroy(nested);
  }
  shmem_team_config_t config{5};
  shmem_team_t same = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &same) == 0);
  CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 && config.num_contexts == 0);
  CHECK(shmem_team_get_config(same, &config) == 0 && config.num_contexts == 5);
  CHECK(shmem_team_get_config(same, 0, nullptr) == 0);
  shmemx_team_info_t info;
  CHECK(shmemx_team_info(same, &info) == 0 && info.n_pes == pes && info.my_pe == me);
  CHECK(info.start == 0 && info.stride == 1);
  shmem_team_destroy(same);
  shmem_team_destroy(even);
  shmem_team_destroy(SHMEM_TEAM_INVALID);

  shmem_team_t row = SHMEM_TEAM_INVALID;
  shmem_team_t column = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &row, &column) == 0);
  CHECK(shmem_team_my_pe(row) == me % 2 && shmem_team_my_pe(column) == me / 2);
  CHECK(shmem_team_sync(row) == 0 && shmem_team_sync(column) == 0);
  shmem_sync(row);
  shmem_team_destroy(column);
  shmem_team_destroy(row);
}

/// Handles that no split has given, among them those that a number of 32 bits cannot tell from SHMEM_TEAM_WORLD.
void foreign_handles() {
  constexpr std::uintptr_t kWorld = 1;
  for (const std::uintptr_t bits :
       {std::uintptr_t{4096}, std::uintptr_t{4097}, std::uintptr_t{1} << 31, (std::uintptr_t{1} << 32) + kWorld,
        UINTPTR_MAX, reinterpret_cast<std::uintptr_t>(&global_word)}) {
    const auto team = reinterpret_cast<shmem_team_t>(bits);  // NOLINT(performance-no-int-to-ptr)
    CHECK(shmem_team_my_pe(team) == -1 && shmem_team_n_pes(team) == -1);
    CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, team) == -1);
    CHECK(shmem_team_ptr(team, &global_word, 0) == nullptr);
    CHECK(shmem_team_sync(team) != 0 && shmemx_barrier_arrive(team) == -EINVAL);
  }
}

void wrong_teams(int pes) {
  shmem_team_t team = kNoTeam;
  for (const auto& [start, stride, size] : {std::array{-1, 1, 1}, std::array{0, 0, 1}, std::array{0, -1, 1},
                                            std::array{0, 1, 0}, std::array{0, 1, pes + 1}, std::array{pes, 1, 1}}) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
  }
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr) != 0);
  const shmem_team_config_t below{-1};
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &below, SHMEM_TEAM_NUM_CONTEXTS, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, SHMEM_TEAM_NUM_CONTEXTS, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &below, 6, &team) != 0);
  CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, nullptr) != 0);
  CHECK(shmem_team_get_config(kNoTeam, 0, nullptr) != 0);
  // A stride that is far too large for anything but a team of one PE.
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2147483647, 1, &team) == 0);
  shmem_team_destroy(team);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2147483647, 2, &team) != 0 || pes < 0);
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, &team, nullptr) != 0);
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, &team, &team) != 0);
  CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
}

void active_sets(int pes) {
  auto* psync = static_cast<long*>(shmem_calloc(SHMEM_BARRIER_SYNC_SIZE, sizeof(long)));
  for (int i = 0; i < 100; ++i) {
    shmem_barrier(0, 0, pes, psync);
    shmem_sync(0, 0, pes, psync);
  }
  shmem_barrier_all();
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) {
    CHECK(psync[i] == SHMEM_SYNC_VALUE);
  }
  shmem_free(psync);
}

void barrier_choice() {
  shmemx_team_info_t before;
  shmemx_team_info_t after;
  for (const char* name : {"npu_v1", "npu_v2", "central_counter", "tournament", "recursive_doubling", "dissemination",
                           "basic", "adaptive", "hierarchical"}) {
    CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, name) == 0);
    shmem_sync_all();
  }
  CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "npu_v3") == 0);
  CHECK(shmemx_team_info(SHMEM_TEAM_WORLD, &before) == 0);
  CHECK(std::strcmp(before.algorithm, "npu_v3") == 0);
  shmem_sync_all();
  CHECK(shmemx_team_info(SHMEM_TEAM_WORLD, &after) == 0);
  CHECK(after.by_software == before.by_software + (shmem_n_pes() > 1 ? 1 : 0) && after.by_device == before.by_device);
  CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "auto") == 0);
  shmem_sync_all();
  CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "fastest") != 0);
  CHECK(std::strstr(shmemx_error_text(), "fastest") != nullptr);
  CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, nullptr) == -EINVAL);
  // One PE alone is wrong, or different: an error on all. SHMEM_DEBUG=1 ends the job.
  const int pes = shmem_n_pes();
  for (int wrong = 0; wrong < pes && std::getenv("SHMEM_DEBUG") == nullptr; ++wrong) {
    const bool mine = wrong == shmem_my_pe();
    CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, mine ? nullptr : "npu_v1") == -EINVAL);
    CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, mine ? "fastest" : "gba") == -EINVAL);
    CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, mine ? "basic" : "npu_v1") == (pes > 1 ? -EINVAL : 0));
    shmem_barrier_all();
  }
  CHECK(shmemx_team_info(kNoTeam, &after) != 0);
  shmemx_barrier_stats_t stats;
  CHECK(shmemx_barrier_stats(SHMEM_TEAM_WORLD, &stats) == 0 && shmemx_team_info(SHMEM_TEAM_WORLD, &after) == 0);
  CHECK(stats.barriers == after.by_device + after.by_software && stats.barriers == stats.by_device + stats.by_software);
  CHECK(stats.timed <= stats.barriers && stats.most_last_count <= stats.timed && stats.wait_ns >= stats.max_wait_ns);
  CHECK(shmemx_barrier_stats(kNoTeam, &stats) == -EINVAL &&
        shmemx_barrier_stats(SHMEM_TEAM_INVALID, &stats) == -EINVAL);
  CHECK(shmemx_barrier_stats(SHMEM_TEAM_WORLD, nullptr) == -EINVAL);
}

void wrong_split_phase() {
  CHECK(shmemx_barrier_arrive(kNoTeam) == -EINVAL && shmemx_barrier_arrive(SHMEM_TEAM_INVALID) == -EINVAL);
  CHECK(shmemx_barrier_test(kNoTeam) == -EINVAL && shmemx_barrier_wait(kNoTeam) == -EINVAL);
  CHECK(shmemx_barrier_timed(kNoTeam, 1000) == -EINVAL);
  CHECK(shmemx_barrier_test(SHMEM_TEAM_WORLD) == -EINVAL);
  CHECK(shmemx_barrier_wait(SHMEM_TEAM_WORLD) == -EINVAL);
  CHECK(std::strstr(shmemx_error_text(), "team 0 has no open barrier") != nullptr);
  CHECK(shmemx_barrier_arrive(SHMEM_TEAM_WORLD) == 0);
  CHECK(shmemx_barrier_arrive(SHMEM_TEAM_WORLD) == -EBUSY);
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == -EBUSY);
  CHECK(shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "npu_v3") == -EBUSY);
  shmem_team_t team = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
  CHECK(shmemx_barrier_wait(SHMEM_TEAM_WORLD) == 0);
  void* block = shmem_malloc(64);
  CHECK(block != nullptr);
  shmem_free(block);
}

void split_phase(int me, int pes) {
  wrong_split_phase();
  auto* words = allocate<int>(2);
  for (int i = 1; i <= 50; ++i) {
    int* word = words + i % 2;
    shmem_putmem(word, &i, sizeof i, (me + 1) % pes);
    CHECK(shmemx_barrier_arrive(SHMEM_TEAM_WORLD) == 0);
    int error = -EAGAIN;
    while (i % 2 == 0 && error == -EAGAIN) {
      error = shmemx_barrier_test(SHMEM_TEAM_WORLD);
    }
    if (error == -EAGAIN) {
      error = shmemx_barrier_wait(SHMEM_TEAM_WORLD);
    }
    CHECK(error == 0 && *word == i);
  }
  shmem_free(words);
  auto* late = allocate<std::uint64_t>();
  if (me == 0 && pes > 1) {
    shmem_signal_wait_until(late, SHMEM_CMP_EQ, static_cast<std::uint64_t>(pes) - 1);
  } else if (pes > 1) {
    CHECK(shmemx_barrier_timed(SHMEM_TEAM_WORLD, 1'000'000) == -ETIMEDOUT);
    const bool one_node = shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes;
    // On several nodes the PE that it waited for may itself wait for PE 0.
    CHECK(std::strstr(shmemx_error_text(), one_node ? "PE 0 (pid " : "no message from PE ") != nullptr);
    shmem_signal_add(late, 1, 0);
  }
  CHECK(shmemx_barrier_timed(SHMEM_TEAM_WORLD, UINT64_MAX) == 0);
  shmem_free(late);
}

struct KernelWork {
  std::uint64_t* counter;  // symmetric
  std::atomic<int> wrong{0};
};

void kernel(shmemx_core_t* core, void* argument) {
  auto& work = *static_cast<KernelWork*>(argument);
  const int cores = shmemx_core_count(core);
  for (std::uint64_t k = 1; k <= 20; ++k) {
    shmem_signal_add(work.counter, 1, 0);
    if (shmemx_core_barrier(core, SHMEM_TEAM_WORLD) != 0) {
      ++work.wrong;
      return;
    }
    std::uint64_t seen = 0;
    shmem_getmem(&seen, work.counter, sizeof seen, 0);
    work.wrong += seen < k * static_cast<std::uint64_t>(cores * shmem_n_pes()) ? 1 : 0;
    work.wrong += shmemx_core_sync(core) != 0 ? 1 : 0;
  }
}

struct KernelIdentity {
  std::uint64_t* symmetric;
  shmem_team_t even = SHMEM_TEAM_INVALID;
  std::atomic<int> wrong{0};
};

void identity_kernel(shmemx_core_t* core, void* argument) {
  auto& work = *static_cast<KernelIdentity*>(argument);
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const auto want = [&](bool good) { work.wrong += good ? 0 : 1; };
  want(shmemx_core_my_pe(core) == me && shmemx_core_n_pes(core) == pes);
  want(shmemx_core_team_my_pe(core, SHMEM_TEAM_WORLD) == me && shmemx_core_team_n_pes(core, kNoTeam) == -1);
  want(shmemx_core_team_n_pes(core, work.even) == shmem_team_n_pes(work.even));
  want(shmemx_core_team_translate_pe(core, work.even, 0, SHMEM_TEAM_WORLD) ==
       shmem_team_translate_pe(work.even, 0, SHMEM_TEAM_WORLD));
  want(shmemx_core_team_translate_pe(core, SHMEM_TEAM_WORLD, pes, SHMEM_TEAM_WORLD) == -1);
  for (int pe = -1; pe <= pes; ++pe) {
    want(shmemx_core_ptr(core, work.symmetric, pe) == shmem_ptr(work.symmetric, pe));
    want(shmemx_core_ptr(core, &work, pe) == nullptr);
    want(shmemx_core_ptr(core, &global_word, pe) == shmem_ptr(&global_word, pe));
  }
}

void kernels() {
  KernelWork work{allocate<std::uint64_t>()};
  for (const int cores : {1, 3, 2}) {
    *work.counter = 0;
    shmem_barrier_all();
    CHECK(shmemx_launch(cores, kernel, &work) == 0);
    CHECK(work.wrong == 0);
    shmem_barrier_all();
  }
  KernelIdentity identity{work.counter};
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, nullptr, 0, &identity.even) == 0);
  CHECK(shmemx_launch(2, identity_kernel, &identity) == 0 && identity.wrong == 0);
  shmem_team_destroy(identity.even);
  CHECK(shmemx_launch(0, kernel, &work) != 0);
  CHECK(shmemx_launch(2, nullptr, &work) != 0);
  shmem_free(work.counter);
}

}  // namespace

PE_PART(api) {
  int provided = -1;
  CHECK(shmem_my_pe() == -1 && shmem_n_pes() == -1);
  CHECK(shmem_init_thread(4, &provided) != 0 && shmem_init_thread(-1, &provided) != 0);
  CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, nullptr) != 0 && shmem_my_pe() == -1);
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  shmem_query_thread(nullptr);
  shmem_query_initialized(nullptr);
  shmem_info_get_version(nullptr, &provided);
  shmem_info_get_name(nullptr);
  CHECK(provided == SHMEM_THREAD_MULTIPLE);
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  queries(me, pes);
  heap();
  transfers(me, pes);
  signals(me, pes);
  teams(me, pes);
  foreign_handles();
  wrong_teams(pes);
  active_sets(pes);
  barrier_choice();
  split_phase(me, pes);
  kernels();
  shmem_finalize();
  // The library can be started again.
  shmem_init();
  CHECK(shmem_n_pes() == pes);
  transfers(me, pes);
  shmem_finalize();
  std::printf("PE %d of %d: %d failures\n", me, pes, pe_failures());
  return pe_failures() == 0 ? 0 : 1;
}
