// SPDX-License-Identifier: Apache-2.0
// Kernels that use names from inside Ascend SHMEM's device code, as documents about it show them: barriers written on
// its signals, barriers by algorithm, the state and its teams, flags between cores. Argument: what to run.
#include <include/internal/device/sync/shmemi_device_barrier.h>
#include <internal/device/sync/shmemi_device_p2p.h>
#include <kernel_operator.h>
#include <shmem.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr int kCores = 3;
constexpr int kRounds = 21;

struct Work {
  int team;
  int32_t* arrived;      // symmetric: the last round of each core, by core
  int32_t* own_words;    // symmetric, 64 bytes each: words of a barrier on the heap
  int32_t* own_counter;  // of this PE
};

/// Centralized, by pull: each PE stores in its own memory and looks at that of the others.
SHMEM_DEVICE void pull(shmemi_team_t* team, int32_t* sync_array, int32_t* sync_counter) {
  const int vec_id = static_cast<int>(AscendC::GetBlockIdx());
  int k = SHMEM_BARRIER_TG_DISSEM_KVAL;
  k = k < AscendC::GetBlockNum() ? k : static_cast<int>(AscendC::GetBlockNum());
  const int32_t count = shmemi_load((__gm__ int32_t*)sync_counter) + 1;
  shmemi_barrier_core();
  for (int i = vec_id; i < team->size; i += k) {
    if (i == team->mype) {
      shmemi_signal_set((__gm__ int32_t*)sync_array, count);
    } else {
      const int remote_pe = team->start + i * team->stride;
      const int32_t seen =
          shmemi_signal_wait_until_eq_for_barrier((__gm__ int32_t*)shmemi_ptr(sync_array, remote_pe), count);
      CHECK(seen >= count);
    }
  }
  shmemi_barrier_core();
  shmemi_store((__gm__ int32_t*)sync_counter, count);
}

/// Dissemination, by push: each PE stores in the memory of others and looks at its own. `stride`: from word to word.
SHMEM_DEVICE void push(shmemi_team_t* team, int32_t* sync_array, ptrdiff_t stride, int32_t* sync_counter) {
  const int32_t count = shmemi_load((__gm__ int32_t*)sync_counter) + 1;
  shmemi_barrier_core();
  if (AscendC::GetBlockIdx() == 0) {
    int offset = 0;
    for (int shift = 1; shift < team->size; shift *= 2) {
      const int next_pe = team->start + (team->mype + shift) % team->size * team->stride;
      int32_t* word = sync_array + offset * stride;
      shmemi_signal_set((__gm__ int32_t*)word, next_pe, count);
      shmemi_signal_wait_until_eq_for_barrier((__gm__ int32_t*)word, count);
      ++offset;
    }
  }
  shmemi_barrier_core();
  shmemi_store((__gm__ int32_t*)sync_counter, count);
}

/// Calls `barrier` once in each round, and checks that no core leaves before all cores of all members have arrived.
template <typename Barrier>
void rounds(const Work& work, shmemi_team_t* team, int first, Barrier barrier) {
  const auto core = AscendC::GetBlockIdx();
  for (int round = first; round < first + kRounds; ++round) {
    shmemi_store(work.arrived + core, static_cast<int32_t>(round));
    barrier(round);
    for (int i = 0; i < team->size; ++i) {
      auto* theirs = static_cast<int32_t*>(shmemi_ptr(work.arrived, team->start + i * team->stride));
      CHECK(theirs != nullptr);
      for (int other = 0; other < kCores; ++other) {
        CHECK(shmemi_load(theirs + other) >= round);
      }
    }
  }
}

void check_state(const Work& work) {
  __gm__ shmemi_device_host_state_t* state = shmemi_get_state();
  CHECK(state->mype == shmem_my_pe() && state->npes == shmem_n_pes());
  CHECK(state->heap_base == shmemx_heap_base() && state->heap_size >= 1 << 20);
  CHECK(state->team_pools[SHMEM_TEAM_WORLD]->mype == state->mype);
  CHECK(state->team_pools[0]->size == state->npes && state->team_pools[0]->stride == 1);
  CHECK(state->team_pools[SHMEM_MAX_TEAMS - 1]->size == 0 && state->team_pools[SHMEM_TEAM_INVALID]->size == 0);
  CHECK(state->team_pools[SHMEM_MAX_TEAMS]->size == 0);
  CHECK(state->sync_pool == shmemi_get_team_sync_array(0) && state->sync_counter == shmemi_get_team_sync_counter(0));
  CHECK(state->core_sync_pool == shmemi_get_core_sync_array());
  CHECK(state->core_sync_counter == shmemi_get_core_sync_counter());
  CHECK(shmemi_ptr(work.arrived, state->npes) == nullptr && shmemi_ptr(&work, state->mype) == nullptr);
}

void kernel(shmemx_core_t* /*core*/, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  check_state(work);
  shmemi_team_t* team = shmemi_get_state()->team_pools[work.team];
  CHECK(team->team_idx == work.team && team->size == shmem_team_n_pes(shmemx_team_by_number(work.team)));
  shmemi_sync_bit* pool = shmemi_get_team_sync_array(team->team_idx);
  auto* sync_array = reinterpret_cast<int32_t*>(pool);
  auto* sync_counter = reinterpret_cast<int32_t*>(shmemi_get_team_sync_counter(team->team_idx));
  constexpr ptrdiff_t kWord = SHMEMI_SYNCBIT_SIZE / sizeof(int32_t);
  const int32_t before = shmemi_load(sync_counter);

  rounds(work, team, 0, [&](int) { pull(team, sync_array, sync_counter); });
  rounds(work, team, 1000, [&](int) { push(team, sync_array, kWord, sync_counter); });
  rounds(work, team, 2000, [&](int) { pull(team, work.own_words, work.own_counter + AscendC::GetBlockIdx()); });
  rounds(work, team, 3000,
         [&](int) { push(team, work.own_words + kWord, kWord, work.own_counter + kCores + AscendC::GetBlockIdx()); });
  rounds(work, team, 4000, [&](int) { shmemi_barrier_npu_v1(team); });
  rounds(work, team, 5000, [&](int) { shmemi_barrier_npu_v2(team); });
  rounds(work, team, 6000, [&](int) { shmemi_barrier_npu_v3(team); });
  // All kinds, one after the other, on the same words.
  rounds(work, team, 7000, [&](int round) {
    switch (round % 7) {
      case 0:
        return shmemi_barrier_npu_v1(team);
      case 1:
        return shmemi_barrier_npu_v2(team);
      case 2:
        return shmemi_barrier_npu_v3(team);
      case 3:
        return pull(team, sync_array, sync_counter);
      case 4:
        return push(team, sync_array, kWord, sync_counter);
      case 5:
        return shmem_barrier(shmemx_team_by_number(team->team_idx));
      default:
        CHECK(shmemx_core_barrier_by(shmemx_current_core(), shmemx_team_by_number(team->team_idx), "central_counter") ==
              0);
    }
  });
  CHECK(shmemi_load(sync_counter) - before == 5 * kRounds + kRounds - kRounds / 7);
}

/// On PEs of any nodes: barriers by name, and a dissemination on words of the heap.
void on_nodes(shmemx_core_t* /*core*/, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  shmemi_team_t* team = shmemi_get_state()->team_pools[SHMEM_TEAM_WORLD];
  const auto core = AscendC::GetBlockIdx();
  constexpr ptrdiff_t kWord = SHMEMI_SYNCBIT_SIZE / sizeof(int32_t);
  for (int32_t round = 1; round <= kRounds; ++round) {
    shmemi_store(work.arrived + core, round);
    switch (round % 4) {
      case 0:
        shmemi_barrier_npu_v1(team);
        break;
      case 1:
        shmemi_barrier_npu_v2(team);
        break;
      case 2:
        shmemi_barrier_npu_v3(team);
        break;
      default:
        push(team, work.own_words, kWord, work.own_counter + core);
    }
    for (int pe = 0; pe < team->size; ++pe) {
      for (int other = 0; other < kCores; ++other) {
        CHECK(shmem_int32_g(work.arrived + other, pe) >= round);
      }
    }
  }
}

/// Each algorithm stores in words of its own, by which one can tell that it was the one.
void which_algorithm(shmemx_core_t* core, void* /*argument*/) {
  shmemi_team_t* team = shmemi_get_state()->team_pools[SHMEM_TEAM_WORLD];
  shmemi_sync_bit* pool = shmemi_get_team_sync_array(team->team_idx);
  const auto rounds_used = [&](uint64_t count) {
    int used = 0;
    for (int i = 1; i <= 36; ++i) {
      used += pool[i].value == count ? 1 : 0;
    }
    return used;
  };
  shmemi_barrier_npu_v3(team);
  CHECK(pool[0].value == 1 && rounds_used(1) == 0);
  shmemi_barrier_npu_v1(team);
  int steps = 0;
  for (int distance = 1; distance < team->size; distance *= 2) {
    ++steps;
  }
  CHECK(pool[0].value == 1 && rounds_used(2) == steps);
  shmemi_barrier_npu_v2(team);
  CHECK(pool[0].value == 1 && rounds_used(3) == team->size - 1);
  shmemx_core_sync(core);
}

/// Flags of each mode, set by some cores sooner than by others.
void flags(shmemx_core_t* core, void* argument) {
  auto* done = static_cast<std::atomic<int>*>(argument);
  const auto me = static_cast<int>(AscendC::GetBlockIdx());
  const auto cores = static_cast<int>(AscendC::GetBlockNum());
  for (int round = 1; round <= kRounds; ++round) {
    done[me] = round;
    AscendC::CrossCoreSetFlag<0x0, PIPE_MTE3>(8);
    AscendC::CrossCoreWaitFlag(8);
    for (int other = 0; other < cores; ++other) {
      CHECK(done[other] >= round);
    }
  }
  AscendC::SyncAll();
  const int partner = (me ^ 1) < cores ? me ^ 1 : me;
  for (int round = kRounds + 1; round <= 2 * kRounds; ++round) {
    done[me] = round;
    AscendC::CrossCoreSetFlag<0x1, PIPE_MTE3>(3);
    AscendC::CrossCoreWaitFlag<0x1, PIPE_MTE3>(3);
    CHECK(done[partner] >= round);
  }
  AscendC::SyncAll();
  // One of a pair is ahead by several counts, as a cube core may be.
  for (int round = 2 * kRounds + 1; round <= 3 * kRounds && partner != me; ++round) {
    if (me % 2 == 0) {
      done[me] = round;
      AscendC::CrossCoreSetFlag<0x2, PIPE_FIX>(15);
    } else {
      AscendC::CrossCoreWaitFlag<0x2, PIPE_S>(15);
      CHECK(done[partner] >= round);
    }
  }
  CHECK(shmemx_core_flag_set(core, 0, 8) == 0);  // left over, and not seen by the next kernel
}

void wrong_flag(shmemx_core_t* core, void* /*argument*/) {
  CHECK(shmemx_core_flag_set(core, 0, 16) == -EINVAL);
  CHECK(shmemx_core_flag_wait(core, 0) == -EINVAL);  // the first error stays
}

void wrong_algorithm(shmemx_core_t* core, void* /*argument*/) {
  CHECK(shmemx_core_barrier_by(core, SHMEM_TEAM_WORLD, "gba") == -EINVAL);
}

void unset_flag(shmemx_core_t* /*core*/, void* /*argument*/) {
  AscendC::CrossCoreWaitFlag(0);
}

void all_but_one(shmemx_core_t* /*core*/, void* /*argument*/) {
  shmemi_barrier_npu_v3(shmemi_get_state()->team_pools[SHMEM_TEAM_WORLD]);
}

void unsignalled(shmemx_core_t* /*core*/, void* argument) {
  CHECK(shmemi_signal_wait_until_eq_for_barrier(static_cast<int32_t*>(argument), 1) == 0);
}

/// Numbers of words that only grow may wrap around, and a peer may be ahead by more than one.
void numbers(shmemx_core_t* /*core*/, void* argument) {
  auto* word = static_cast<int32_t*>(argument);
  shmemi_signal_set(word, 7);
  CHECK(shmemi_signal_wait_until_eq_for_barrier(word, 3) == 7);
  shmemi_signal_set(word, INT32_MIN + 1);
  CHECK(shmemi_signal_wait_until_eq_for_barrier(word, INT32_MAX) == INT32_MIN + 1);
}

Work make_work() {
  return {0, static_cast<int32_t*>(shmem_calloc(kCores, sizeof(int32_t))),
          static_cast<int32_t*>(shmem_calloc(16, SHMEMI_SYNCBIT_SIZE)),
          static_cast<int32_t*>(shmem_calloc(size_t{2} * kCores, sizeof(int32_t)))};
}

void free_work(const Work& work) {
  shmem_free(work.own_counter);
  shmem_free(work.own_words);
  shmem_free(work.arrived);
}

void run_on_nodes() {
  Work work = make_work();
  CHECK(shmemx_launch(kCores, on_nodes, &work) == 0);
  shmem_barrier_all();
  free_work(work);
}

void run_barriers() {
  Work work = make_work();
  CHECK(shmemx_launch(kCores, kernel, &work) == 0);
  shmem_barrier_all();

  // From PE 1 on, every second PE: on 8 PEs the PEs 1, 3 and 5 are 0, 1 and 2 of the team.
  shmem_team_t new_team = SHMEM_TEAM_INVALID;
  const int size = shmem_n_pes() / 2 < 3 ? shmem_n_pes() / 2 : 3;
  for (int again = 0; size > 0 && again < 2; ++again) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, size, &new_team) == 0);
    if (new_team != SHMEM_TEAM_INVALID) {
      memset(work.arrived, 0, kCores * sizeof(int32_t));
      memset(work.own_words, 0, 16 * SHMEMI_SYNCBIT_SIZE);
      memset(work.own_counter, 0, size_t{2} * kCores * sizeof(int32_t));
      work.team = shmemx_team_number(new_team);
      CHECK(shmemi_get_state()->team_pools[new_team]->mype == (shmem_my_pe() - 1) / 2);
      shmem_team_sync(new_team);
      CHECK(shmemx_launch(kCores, kernel, &work) == 0);
    }
    shmem_barrier_all();
    shmem_team_destroy(new_team);  // the next team of that number finds its words zero
  }
  free_work(work);
}

void run_flags() {
  std::vector<std::atomic<int>> done(5);
  for (int cores = 1; cores <= 5; ++cores) {
    for (auto& each : done) {
      each = 0;
    }
    CHECK(shmemx_launch(cores, flags, done.data()) == 0);
  }
  CHECK(shmemx_launch(2, wrong_flag, nullptr) == -EINVAL);
  CHECK(shmemx_launch(2, wrong_algorithm, nullptr) == -EINVAL);
}

}  // namespace

PE_PART(fragments) {
  const std::string what = argc == 2 ? argv[1] : "";
  shmem_init();
  if (what == "barriers") {
    CHECK(shmem_n_pes() <= 8 && shmemx_launch(kCores, which_algorithm, nullptr) == 0);
    run_barriers();
    auto* word = static_cast<int32_t*>(shmem_calloc(1, sizeof(int32_t)));
    CHECK(shmemx_launch(1, numbers, word) == 0);
    shmem_free(word);
  } else if (what == "flags") {
    run_flags();
  } else if (what == "nodes") {
    run_on_nodes();
  } else {
    int32_t word = 0;
    if (what == "absent" && shmem_my_pe() == 0) {
      pause();  // until the others end the job
    }
    const auto kernel_of = [&] {
      return what == "absent" ? all_but_one : what == "unset-flag" ? unset_flag : unsignalled;
    };
    CHECK(shmemx_launch(2, kernel_of(), &word) == -ETIMEDOUT);
    shmem_global_exit(0);
  }
  return shmem_finalize();
}
