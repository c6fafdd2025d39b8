// SPDX-License-Identifier: Apache-2.0
// PEs whose kernels make every call of shmem_device.h, on 1, 2, 4 and 8 cores.
#include <shmem_device.h>
#include <shmemx_interface.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

using pe_checks::allocate;

/// The argument of every kernel here.
struct Work {
  int cores = 0;
  int right = 0;
  std::uint64_t* signal = nullptr;   // symmetric, one for each core
  std::int32_t* signal32 = nullptr;  // the same
  std::uint64_t* counter = nullptr;  // symmetric
  void* elements = nullptr;          // symmetric
  shmem_team_t team = SHMEM_TEAM_WORLD;
  std::uint64_t plain = 0;  // of this PE
};

void config_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  CHECK(shmemx_current_core() == core && shmemx_core_count(core) == work.cores);
  CHECK(shmemx_get_ffts_config() == 0x123456789abcdef0U + static_cast<unsigned>(shmem_my_pe()));
  CHECK(shmemx_core_sync(core) == 0);
  const auto own = static_cast<std::uint64_t>(shmemx_core_index(core)) + 100;
  shmemx_set_ffts_config(own);
  CHECK(shmemx_core_sync(core) == 0);
  CHECK(shmemx_core_get_ffts_config(core) == own);
}

void config(Work& work) {
  const auto word = 0x123456789abcdef0U + static_cast<unsigned>(shmem_my_pe());
  CHECK(shmemx_current_core() == nullptr);
  shmemx_set_ffts_config(word);
  for (int again = 0; again < 2; ++again) {
    CHECK(shmemx_launch(work.cores, config_kernel, &work) == 0);
    CHECK(shmemx_get_ffts_config() == word);
  }
}

/// Each core signals the core with its number on the PE to the right.
void signal_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  std::uint64_t* signal = work.signal + shmemx_core_index(core);
  std::int32_t* small = work.signal32 + shmemx_core_index(core);
  for (int k = 1; k <= 10; ++k) {
    shmemx_core_signal_op(core, signal, static_cast<std::uint64_t>(k), SHMEM_SIGNAL_SET, work.right);
    shmemx_signal_op(small, -1, SHMEM_SIGNAL_ADD, work.right);
    shmemx_core_fence(core);
    shmemx_core_quiet(core);
    CHECK(shmemx_core_signal_wait_until(core, signal, SHMEM_CMP_GE, std::uint64_t(k)) == std::uint64_t(k));
    CHECK(shmem_signal_wait_until(small, SHMEM_CMP_LE, -k) == -k);
    CHECK(shmemx_core_barrier_all(core) == 0);
  }
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, std::uint64_t{10}) == 10);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_NE, std::uint64_t{11}) == 10);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GT, std::uint64_t{9}) == 10);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_LT, std::uint64_t{11}) == 10);
  CHECK(shmemx_core_sync_all(core) == 0);
}

/// The family of one type, on core 0. The left neighbour writes the elements.
template <typename T>
void family(shmemx_core_t* core, const Work& work) {
  constexpr std::size_t kCount = 5;
  auto* elements = static_cast<T*>(work.elements);
  const int status[kCount] = {0, 0, 1, 0, 0};
  const int all_excluded[kCount] = {1, 1, 1, 1, 1};
  const T values[kCount] = {1, 2, 3, 4, 5};
  const T zeros[kCount] = {};
  std::size_t indices[kCount] = {};

  // All elements that `status` selects are still 0.
  CHECK(shmemx_test_any(elements, kCount, status, SHMEM_CMP_NE, 0) == SIZE_MAX);
  CHECK(shmemx_test_some(elements, kCount, indices, status, SHMEM_CMP_NE, 0) == 0);
  CHECK(shmemx_core_test_all(core, elements, kCount, nullptr, SHMEM_CMP_EQ, T{0}) == 1);
  CHECK(shmemx_test(elements, SHMEM_CMP_GT, 0) == 0 && shmemx_test(elements, SHMEM_CMP_LE, 0) == 1);
  shmem_sync_all();

  shmem_putmem(elements + 3, &values[3], sizeof(T), work.right);
  CHECK(shmemx_wait_until_any(elements, kCount, status, SHMEM_CMP_GE, 4) == 3);
  CHECK(shmemx_core_wait_until_some(core, elements, kCount, indices, status, SHMEM_CMP_NE, T{0}) == 1 &&
        indices[0] == 3);
  shmemx_wait(elements + 3, 0);
  shmem_sync_all();

  shmem_putmem(elements, values, sizeof values, work.right);
  shmemx_wait_until(elements + 4, SHMEM_CMP_EQ, 5);
  shmemx_wait_until_all(elements, kCount, nullptr, SHMEM_CMP_GT, 0);
  shmemx_wait_until_all_vector(elements, kCount, status, SHMEM_CMP_EQ, values);
  CHECK(shmemx_wait_until_any_vector(elements, kCount, status, SHMEM_CMP_EQ, values) < kCount);
  CHECK(shmemx_wait_until_some_vector(elements, kCount, indices, status, SHMEM_CMP_EQ, values) == 4 && indices[2] == 3);
  CHECK(shmemx_test_all_vector(elements, kCount, nullptr, SHMEM_CMP_EQ, values) == 1);
  CHECK(shmemx_test_all_vector(elements, kCount, nullptr, SHMEM_CMP_EQ, zeros) == 0);
  CHECK(shmemx_test_any_vector(elements, kCount, nullptr, SHMEM_CMP_NE, values) == SIZE_MAX);
  CHECK(shmemx_test_some_vector(elements, kCount, indices, nullptr, SHMEM_CMP_LE, values) == 5);
  // Nothing to wait for.
  shmemx_wait_until_all(elements, kCount, all_excluded, SHMEM_CMP_LT, 0);
  CHECK(shmemx_wait_until_any(elements, kCount, all_excluded, SHMEM_CMP_LT, 0) == SIZE_MAX);
  CHECK(shmemx_wait_until_some(elements, 0, indices, nullptr, SHMEM_CMP_LT, 0) == 0);
  CHECK(shmemx_test_all(elements, kCount, all_excluded, SHMEM_CMP_LT, 0) == 1);
  shmem_sync_all();
  std::fill_n(elements, kCount, T{0});
  shmem_sync_all();
}

template <typename T>
void family_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  if (shmemx_core_index(core) == 0) {
    return family<T>(core, work);
  }
  for (int i = 0; i < 4; ++i) {
    shmem_sync_all();
  }
}

/// A plain variable, polled with dcci.
void cache_kernel(shmemx_core_t* core, void* argument) {
  auto& work = *static_cast<Work*>(argument);
  if (shmemx_core_index(core) == 0) {
    work.plain = 1;
    shmemx_dcci(&work.plain);
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (work.plain == 0 && std::chrono::steady_clock::now() < end) {
    shmemx_dcci_range(&work.plain, sizeof work.plain);
    shmemx_dcci_all();
  }
  CHECK(work.plain == 1);
}

/// A barrier of all PEs of the team, written by a program: dissemination on the words of the team.
void own_barrier(shmemx_core_t* core, shmem_team_t team) {
  CHECK(shmemx_core_sync_in_memory(core) == 0);
  if (shmemx_core_index(core) == 0) {
    const int me = shmem_team_my_pe(team);
    const int pes = shmem_team_n_pes(team);
    shmemx_sync_word_t* counter = shmemx_team_sync_counter(team, me);
    const std::uint64_t count = counter->value + 1;
    for (int round = 0, distance = 1; distance < pes; ++round, distance <<= 1) {
      shmemx_sync_set(shmemx_team_sync_pool(team, (me + distance) % pes) + round, count);
      CHECK(shmemx_sync_wait_until(shmemx_team_sync_pool(team, me) + round, SHMEM_CMP_GE, count) == 0);
    }
    shmemx_sync_set(counter, count);
  }
  CHECK(shmemx_core_sync_in_memory(core) == 0);
}

void words_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  CHECK(shmemx_core_sync_pool(core) != nullptr && shmemx_core_sync_counter(core) != nullptr);
  CHECK(shmemx_team_sync_pool(work.team, shmem_team_n_pes(work.team)) == nullptr);
  CHECK(shmemx_team_sync_counter(shmemx_team_by_number(99), 0) == nullptr);
  const auto all_cores =
      static_cast<std::uint64_t>(work.cores) * static_cast<std::uint64_t>(shmem_team_n_pes(work.team));
  const int first = shmem_team_translate_pe(work.team, 0, SHMEM_TEAM_WORLD);
  for (std::uint64_t k = 1; k <= 20; ++k) {
    shmem_signal_add(work.counter, 1, first);
    own_barrier(core, work.team);
    std::uint64_t seen = 0;
    shmem_getmem(&seen, work.counter, sizeof seen, first);
    CHECK(seen >= k * all_cores);
  }
}

/// Words are for the PEs of a node.
void words(Work& work) {
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    const bool here = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
    CHECK((shmemx_team_sync_pool(SHMEM_TEAM_WORLD, pe) != nullptr) == here);
  }
  for (int again = 0; again < 2; ++again) {  // the second team has the slot of the first, and words that are zero
    CHECK(shmem_team_split_strided(SHMEM_TEAM_SHARED, 0, 2, (shmem_team_n_pes(SHMEM_TEAM_SHARED) + 1) / 2, nullptr, 0,
                                   &work.team) == 0);
    if (work.team != SHMEM_TEAM_INVALID) {
      const int me = shmem_team_my_pe(work.team);
      CHECK(shmemx_team_sync_counter(work.team, me)->value == 0 && shmemx_team_sync_pool(work.team, me)->value == 0);
      shmem_team_sync(work.team);
      *work.counter = 0;
      shmem_team_sync(work.team);
      CHECK(shmemx_launch(work.cores, words_kernel, &work) == 0);
      CHECK(shmemx_team_sync_counter(work.team, me)->value == 20);
    }
    shmem_team_destroy(work.team);
  }
}

/// Random lists of PEs, the same on all PEs, and for each list a word at its first PE that counts arrived PEs.
struct Lists {
  std::vector<std::vector<std::uint32_t>> members;
  std::uint64_t* entered = nullptr;  // symmetric, one for each list
  int cores = 0;                     // 0: on the host
};

bool named(const std::vector<std::uint32_t>& list, int pe) {
  return std::find(list.begin(), list.end(), static_cast<std::uint32_t>(pe)) != list.end();
}

void meet_lists(const Lists& lists) {
  const auto callers = static_cast<std::uint64_t>(std::max(lists.cores, 1));
  for (std::size_t i = 0; i < lists.members.size(); ++i) {
    const auto& list = lists.members[i];
    if (!named(list, shmem_my_pe())) {
      continue;
    }
    const auto count = static_cast<std::uint32_t>(list.size());
    const int first = static_cast<int>(list[0]);
    shmem_signal_add(lists.entered + i, 1, first);
    CHECK((lists.cores > 0 && i % 2 == 0 ? shmemx_partial_barrier_vec(SHMEM_TEAM_WORLD, list.data(), count)
                                         : shmemx_partial_barrier(SHMEM_TEAM_WORLD, list.data(), count)) == 0);
    std::uint64_t seen = 0;
    shmem_getmem(&seen, lists.entered + i, sizeof seen, first);
    CHECK(seen == callers * count);
  }
}

void lists_kernel(shmemx_core_t* /*core*/, void* argument) {
  meet_lists(*static_cast<Lists*>(argument));
}

void partial_barriers(int cores, unsigned seed) {
  constexpr std::size_t kLists = 100;
  std::mt19937 random(seed);
  Lists lists;
  lists.cores = cores;
  for (std::size_t i = 0; i < kLists; ++i) {
    std::vector<std::uint32_t> list(static_cast<std::size_t>(shmem_n_pes()));
    std::iota(list.begin(), list.end(), 0U);
    std::shuffle(list.begin(), list.end(), random);
    list.resize(1 + random() % list.size());
    lists.members.push_back(list);
  }
  lists.entered = allocate<std::uint64_t>(kLists);
  if (cores > 0) {
    CHECK(shmemx_launch(cores, lists_kernel, &lists) == 0);
  } else {
    meet_lists(lists);
    const std::uint32_t others[] = {static_cast<std::uint32_t>(shmem_my_pe()), 1000};
    CHECK(shmemx_partial_barrier(SHMEM_TEAM_WORLD, others, 2) != 0);
    CHECK(shmemx_partial_barrier(shmemx_team_by_number(99), others, 1) != 0 &&
          shmemx_partial_barrier(SHMEM_TEAM_WORLD, others, 0) != 0);
    CHECK(shmemx_partial_barrier(SHMEM_TEAM_WORLD, others, 1) == 0);
  }
  shmem_free(lists.entered);
}

}  // namespace

PE_PART(kernel_calls) {
  shmem_init();
  const int pes = shmem_n_pes();
  partial_barriers(0, 1);
  for (const int cores : {1, 2, 4, 8}) {
    Work work;
    work.cores = cores;
    work.right = (shmem_my_pe() + 1) % pes;
    work.signal = allocate<std::uint64_t>(8);
    work.signal32 = allocate<std::int32_t>(8);
    work.counter = allocate<std::uint64_t>();
    work.elements = allocate<std::uint64_t>(8);
    config(work);
    for (const shmemx_kernel_t kernel :
         {signal_kernel, family_kernel<float>, family_kernel<std::int8_t>, family_kernel<std::int16_t>,
          family_kernel<std::int32_t>, family_kernel<std::int64_t>, family_kernel<std::uint8_t>,
          family_kernel<std::uint16_t>, family_kernel<std::uint32_t>, family_kernel<std::uint64_t>, family_kernel<char>,
          cache_kernel}) {
      CHECK(shmemx_launch(cores, kernel, &work) == 0);
    }
    words(work);
    partial_barriers(cores, static_cast<unsigned>(cores) + 1);
    for (void* memory : {static_cast<void*>(work.elements), static_cast<void*>(work.counter),
                         static_cast<void*>(work.signal32), static_cast<void*>(work.signal)}) {
      shmem_free(memory);
    }
  }
  shmem_finalize();
  return pe_failures() == 0 ? 0 : 1;
}
