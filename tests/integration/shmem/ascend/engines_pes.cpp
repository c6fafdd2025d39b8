// SPDX-License-Identifier: Apache-2.0
// Ascend SHMEM's calls of the engines RoCE, SDMA and UDMA: each moves its bytes, or synchronises, by pointers, tensors,
// queues and batches.
#include <acl/acl.h>
#include <shmem.h>  // the one in ascend/

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "areas.hpp"

namespace {

using namespace areas;

constexpr int kCores = 3;

/// The PEs' numbers for a relay, which needs three.
bool has_relay() {
  return aclshmem_n_pes() > 2;
}
int relay() {
  return (aclshmem_my_pe() + 2) % aclshmem_n_pes();
}

template <typename T>
struct Scratch {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an offset in the core's own memory
  T* offset = reinterpret_cast<T*>(uintptr_t{1024});
  AscendC::LocalTensor<T> tensor{offset, 128 / sizeof(T)};
};

/// CALL(to, from, scratch, elements, ..., sync) by pointers, by tensors, and in a batch of two; then QUIET. The data
/// comes from PE FROM.
#define MOVES(FROM, CALL, QUIET, ...)                                                                                  \
  moves<T>(work, FROM, 13, [&](const A& a) {                                                                           \
    CALL(a.dest, a.source, own.offset, 13U, __VA_ARGS__, EVENT_ID0);                                                   \
    QUIET;                                                                                                             \
  });                                                                                                                  \
  moves<T>(work, FROM, 13, [&](const A& a) {                                                                           \
    CALL<T>(global(a.dest), global(a.source), own.tensor, 13U, __VA_ARGS__, EVENT_ID0);                                \
    QUIET;                                                                                                             \
  });                                                                                                                  \
  moves<T>(work, FROM, 13, [&](const A& a) {                                                                           \
    aclshmemx_submit_state_t batch{};                                                                                  \
    CALL(a.dest, a.source, own.offset, 6U, __VA_ARGS__, EVENT_ID0, aclshmemx_defer_t(batch));                          \
    CHECK(batch.pending_count == 1);                                                                                   \
    CALL(global(a.dest + 6), global(a.source + 6), own.tensor, 7U, __VA_ARGS__, EVENT_ID0, aclshmemx_submit_t(batch)); \
    CHECK(batch.pending_count == 0);                                                                                   \
    QUIET;                                                                                                             \
  });

template <typename T>
void roce(shmemx_core_t* core, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  using A = Areas<T>;
  const Scratch<T> own;
  const auto to = static_cast<uint32_t>(right());
  const auto queue = static_cast<uint32_t>(shmemx_core_index(core));
  MOVES(left(), aclshmemx_roce_put_nbi, aclshmemx_roce_quiet(to, own.offset, 0), right())
  MOVES(right(), aclshmemx_roce_get_nbi, aclshmemx_roce_quiet(to, own.offset, 0), right())
  MOVES(left(), aclshmemx_roce_qp_put_nbi, aclshmemx_roce_qp_quiet(to, queue, own.offset, 0), right(), queue)
  MOVES(right(), aclshmemx_roce_qp_get_nbi, aclshmemx_roce_qp_quiet(to, queue, own.tensor, 0), right(), queue)
  moves<T>(work, left(), 13, [&](const A& a) { aclshmemx_roce_put_nbi(a.dest, a.source, own.offset, 13, right()); });
  moves<T>(work, right(), 13,
           [&](const A& a) { aclshmemx_roce_get_nbi(global(a.dest), global(a.source), own.tensor, 13, right()); });
}

template <typename T>
void sdma(shmemx_core_t* core, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  using A = Areas<T>;
  Scratch<T> own;
  const auto queue = static_cast<uint32_t>(shmemx_core_index(core));
  moves<T>(work, left(), 13, [&](const A& a) {
    aclshmemx_sdma_put_nbi(a.dest, a.source, own.offset, 64U, 13U, right(), EVENT_ID0);
    aclshmemx_sdma_quiet(own.offset, 64U, EVENT_ID0);
  });
  moves<T>(work, right(), 13, [&](const A& a) {
    aclshmemx_sdma_get_nbi(a.dest, a.source, own.offset, 64U, 13U, right(), EVENT_ID0);
    aclshmemx_sdma_quiet(own.tensor, EVENT_ID0);
  });
  moves<T>(work, left(), 13, [&](const A& a) {
    auto dest = global(a.dest), source = global(a.source);
    aclshmemx_sdma_put_nbi(dest, source, own.tensor, 13U, right(), EVENT_ID0);
  });
  moves<T>(work, right(), 13, [&](const A& a) {
    auto dest = global(a.dest), source = global(a.source);
    aclshmemx_sdma_get_nbi(dest, source, own.tensor, 13U, right(), EVENT_ID0);
  });
  moves<T>(work, left(), 13, [&](const A& a) {
    aclshmemx_sdma_qp_put_nbi(a.dest, a.source, own.offset, 64U, 13U, right(), queue, EVENT_ID0);
    aclshmemx_sdma_qp_quiet(own.offset, 64U, queue, EVENT_ID0);
  });
  moves<T>(work, right(), 13, [&](const A& a) {
    aclshmemx_sdma_qp_get_nbi(global(a.dest), global(a.source), own.tensor, 13U, right(), queue, EVENT_ID0);
    aclshmemx_sdma_qp_quiet(own.tensor, queue, EVENT_ID0);
  });
  moves<T>(work, left(), 13, [&](const A& a) {
    aclshmemx_cmo_nbi(a.source, 13U, ACLSHMEMCMOTYPE::CMO_TYPE_PREFETCH, own.offset, 64U, EVENT_ID0);
    aclshmemx_cmo_qp_nbi(global(a.source), 13U, ACLSHMEMCMOTYPE::CMO_TYPE_FLUSH, own.tensor, queue, EVENT_ID0);
    aclshmemx_sdma_qp_put_nbi(global(a.dest), global(a.source), own.tensor, 13U, right(), queue, EVENT_ID0);
  });
}

template <typename T>
void udma(shmemx_core_t* core, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  using A = Areas<T>;
  const Scratch<T> own;
  const auto queue = static_cast<uint32_t>(shmemx_core_index(core));
  MOVES(left(), aclshmemx_udma_put_nbi, aclshmemx_udma_quiet(right()), right())
  MOVES(right(), aclshmemx_udma_get_nbi, aclshmemx_udma_quiet(right()), right())
  MOVES(left(), aclshmemx_udma_qp_put_nbi, aclshmemx_udma_qp_quiet(right(), queue), right(), queue)
  MOVES(right(), aclshmemx_udma_qp_get_nbi, aclshmemx_udma_qp_quiet(right(), queue), right(), queue)
  if (has_relay()) {
    MOVES(left(), aclshmemx_udma_relay_put_nbi, aclshmemx_udma_quiet(right()), right(), relay())
    MOVES(right(), aclshmemx_udma_relay_get_nbi, aclshmemx_udma_quiet(right()), right(), relay())
  }
  moves<T>(work, left(), 13, [&](const A& a) {
    T* const none = nullptr;  // not used by this pipe
    aclshmemx_udma_put_nbi<T, PIPE_S>(a.dest, a.source, none, 13U, right());
  });
}

/// `words`: for each core a symmetric word of 64 bits.
struct Signalled {
  Work work;
  uint64_t* words;
};
void put_signal(shmemx_core_t* core, void* argument) {
  const auto& [work, words] = *static_cast<Signalled*>(argument);
  using A = Areas<int16_t>;
  uint64_t* const word = words + shmemx_core_index(core);
  const auto queue = static_cast<uint32_t>(shmemx_core_index(core));
  Scratch<uint8_t> own;
  uint64_t value = uint64_t{1} << 40;
  const auto signalled = [&, &work = work](auto put) {
    moves<int16_t>(work, left(), 13, [&](const A& a) {
      put(a, ++value);
      aclshmem_uint64_wait_until(word, ACLSHMEM_CMP_EQ, value);
      CHECK(a.dest[12] == A::value(left(), 12));  // before any barrier
    });
  };
  signalled([&](const A& a, uint64_t v) { aclshmemx_udma_put_signal_nbi(a.dest, a.source, 13U, word, v, right()); });
  signalled([&](const A& a, uint64_t v) {
    aclshmemx_udma_put_signal_nbi(a.dest, a.source, 13U, word, v, right(), own.offset, 0);
  });
  signalled([&](const A& a, uint64_t v) {
    aclshmemx_udma_qp_put_signal_nbi(a.dest, a.source, 13U, word, v, right(), queue);
  });
  signalled([&](const A& a, uint64_t v) {
    aclshmemx_udma_qp_put_signal_nbi<int16_t, PIPE_S>(a.dest, a.source, 13U, word, v, right(), queue, own.offset);
  });
}

/// A word of the right neighbour that this core alone changes, from 0.
template <typename T>
T* own_word(void* argument) {
  const Areas<T> a(*static_cast<Work*>(argument));
  a.dest[0] = T(0);
  aclshmem_barrier_all();
  return a.dest;
}

#define DEFINE_ATOMICS(ENGINE)                                                        \
  template <typename T>                                                               \
  void atomics_##ENGINE(shmemx_core_t* /*core*/, void* argument) {                    \
    T* const word = own_word<T>(argument);                                            \
    const int to = right();                                                           \
    aclshmemx_##ENGINE##_atomic_set(word, T(5), to);                                  \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch(word, to) == T(5));                       \
    aclshmemx_##ENGINE##_atomic_add(word, T(3), to);                                  \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch_add(word, T(2), to) == T(8));             \
    aclshmemx_##ENGINE##_atomic_inc(word, to);                                        \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch_inc(word, to) == T(11));                  \
    CHECK(aclshmemx_##ENGINE##_atomic_compare_swap(word, T(0), T(1), to) == T(12));   \
    CHECK(aclshmemx_##ENGINE##_atomic_compare_swap(word, T(12), T(20), to) == T(12)); \
    CHECK(aclshmemx_##ENGINE##_atomic_swap(word, T(15), to) == T(20));                \
    aclshmemx_##ENGINE##_atomic_and(word, T(7), to);                                  \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch_and(word, T(6), to) == T(7));             \
    aclshmemx_##ENGINE##_atomic_or(word, T(8), to);                                   \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch_or(word, T(1), to) == T(14));             \
    aclshmemx_##ENGINE##_atomic_xor(word, T(1), to);                                  \
    CHECK(aclshmemx_##ENGINE##_atomic_fetch_xor(word, T(3), to) == T(14));            \
    aclshmem_barrier_all();                                                           \
    CHECK(*word == T(13));                                                            \
    aclshmem_barrier_all();                                                           \
  }                                                                                   \
  void floats_##ENGINE(shmemx_core_t* /*core*/, void* argument) {                     \
    auto* const word = own_word<float>(argument);                                     \
    aclshmemx_##ENGINE##_atomic_add(word, 1.5F, right());                             \
    aclshmemx_##ENGINE##_atomic_inc(word, right());                                   \
    aclshmem_barrier_all();                                                           \
    CHECK(*word == 2.5F);                                                             \
    aclshmem_barrier_all();                                                           \
  }
DEFINE_ATOMICS(roce)
DEFINE_ATOMICS(udma)

/// Rounds in which the PEs are late in turn: what the right neighbour gets before a barrier must be there after it.
template <typename Sync>
void rounds(const Work& work, Sync sync) {
  const Areas<int32_t> a(work);
  const Scratch<int32_t> own;
  for (int32_t round = 1; round <= 20; ++round) {
    if (aclshmem_my_pe() % 2 == round % 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    a.source[0] = round;
    aclshmemx_roce_put_nbi(a.dest, a.source, own.offset, 1U, right());
    sync(own.offset);
    CHECK(a.dest[0] == round);
    sync(own.offset);
  }
}
struct Synchronised {
  Work work;
  aclshmem_team_t team;
};
/// Core 1 alone, for its PE; the other cores have ended.
void syncs(shmemx_core_t* core, void* argument) {
  const auto& [work, number] = *static_cast<Synchronised*>(argument);
  if (shmemx_core_index(core) != 1) {
    return;
  }
  aclshmemx_team_t* const team = aclshmemi_get_state()->team_pools[number];
  CHECK(team->size == aclshmem_n_pes() && team->mype == aclshmem_my_pe());
  const auto quiet = [](int32_t* buf) { aclshmemx_roce_quiet(static_cast<uint32_t>(right()), buf, 0); };
  rounds(work, [](int32_t* /*buf*/) { aclshmemx_roce_barrier_all(); });
  rounds(work, [](int32_t* buf) { aclshmemx_roce_barrier_all(buf, 0); });
  rounds(work, [team](int32_t* /*buf*/) { CHECK(aclshmemx_roce_barrier(team) == 0); });
  rounds(work, [team](int32_t* buf) { CHECK(aclshmemx_roce_barrier(team, buf, 0) == 0); });
  rounds(work, [quiet](int32_t* buf) {
    quiet(buf);
    aclshmemx_roce_sync_all();
  });
  rounds(work, [quiet](int32_t* buf) {
    quiet(buf);
    aclshmemx_roce_sync_all(buf, 0);
  });
  rounds(work, [quiet, team](int32_t* buf) {
    quiet(buf);
    CHECK(aclshmemx_roce_sync(team) == 0);
  });
  rounds(work, [quiet, team](int32_t* buf) {
    quiet(buf);
    CHECK(aclshmemx_roce_team_sync(team, buf, 0) == 0);
  });
}
/// All cores, which take turns.
void syncs_in_turn(shmemx_core_t* /*core*/, void* /*argument*/) {
  for (int i = 0; i < 20; ++i) {
    aclshmemx_roce_barrier_all();
  }
}

/// Each core copies late, then notifies the host.
void notifies(shmemx_core_t* core, void* argument) {
  const Areas<int32_t> a(*static_cast<Work*>(argument));
  const Scratch<int32_t> own;
  const auto queue = static_cast<uint32_t>(shmemx_core_index(core));
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  aclshmemx_sdma_put_nbi(a.dest, a.source, own.offset, 64U, 13U, right(), EVENT_ID0);
  switch (queue) {
    case 0:
      return aclshmemx_sdma_notify_record(own.tensor, EVENT_ID0);
    case 1:
      return aclshmemx_sdma_notify_record(own.offset, 64U, EVENT_ID0);
    default:
      return aclshmemx_sdma_qp_notify_record(own.offset, 64U, queue, EVENT_ID0);
  }
}
void test_notifies(Work& work) {
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
  auto* const dest = reinterpret_cast<int32_t*>(work.dest);
  for (int32_t round = 1; round <= 3; ++round) {
    for (size_t i = 0; i < kCores * kRoom * 4; ++i) {
      reinterpret_cast<int32_t*>(work.source)[i] = round;
    }
    aclshmem_barrier_all();
    shmemx_launch_on_stream(kCores, notifies, &work, static_cast<shmemx_stream_t*>(stream));
    for (int core = 0; core < kCores; ++core) {
      CHECK(aclrtWaitAndResetNotify(g_state_host.notify_arr[core], g_state_host.default_stream, 0) == ACL_SUCCESS);
    }
    aclshmem_barrier_all();  // follows the work of the default stream
    for (size_t core = 0; core < kCores; ++core) {
      CHECK(dest[core * kRoom * 4] == round && dest[core * kRoom * 4 + 12] == round);
    }
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    aclshmem_barrier_all();
  }
  // A program's own notify, and a wait that is limited.
  aclrtNotify notify = nullptr;
  CHECK(aclrtCreateNotify(&notify, 0) == ACL_SUCCESS);
  CHECK(aclrtRecordNotify(notify, stream) == ACL_SUCCESS);
  CHECK(aclrtWaitAndResetNotify(notify, nullptr, 0) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStream(nullptr) == ACL_SUCCESS);
  CHECK(aclrtWaitAndResetNotify(notify, nullptr, 1) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStream(nullptr) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK(aclrtDestroyNotify(notify) == ACL_SUCCESS && aclrtDestroyStream(stream) == ACL_SUCCESS);
}

void test_queues() {
  CHECK(aclshmemx_set_qp_num(ACLSHMEM_DATA_OP_MTE, 1) == ACLSHMEM_NOT_SUPPORTED);
  CHECK(aclshmemx_set_qp_num(ACLSHMEM_DATA_OP_UDMA, 0) == ACLSHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_qp_num(ACLSHMEM_DATA_OP_ROCE, ACLSHMEM_MAX_QP_NUM + 1) == ACLSHMEM_INVALID_VALUE);
  for (const auto engine : {ACLSHMEM_DATA_OP_SDMA, ACLSHMEM_DATA_OP_ROCE, ACLSHMEM_DATA_OP_UDMA}) {
    CHECK(aclshmemx_set_qp_num(engine, kCores) == ACLSHMEM_SUCCESS);
  }
}

/// Each ends the job with a message that names the call. The host may call these, too.
void mistake(const std::string& name) {
  auto* const inside = static_cast<int32_t*>(aclshmem_calloc(128, sizeof(int32_t)));
  int32_t* const none = nullptr;  // the beginning of the thread's scratch
  std::array<int32_t, 2> outside{};
  const AscendC::LocalTensor<int32_t> no_tensor;
  const int no_pe = aclshmem_n_pes();
  if (name == "pe") {
    aclshmemx_roce_put_nbi(inside, inside, none, 1U, no_pe, 0U);
  } else if (name == "address") {
    aclshmemx_sdma_put_nbi(outside.data(), inside, none, 64U, 1U, 0, 0U);
  } else if (name == "end") {
    aclshmemx_udma_get_nbi(outside.data(), inside, none, 1U << 30, 0);
  } else if (name == "scratch") {
    aclshmemx_sdma_get_nbi(inside, inside, none, 63U, 1U, 0, 0U);
  } else if (name == "tensor") {
    aclshmemx_roce_get_nbi(global(inside), global(inside), no_tensor, 1U, 0, 0U);
  } else if (name == "offset") {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an offset
    aclshmemx_udma_put_nbi(inside, inside, reinterpret_cast<int32_t*>(uintptr_t{SHMEMX_SCRATCH_SIZE - 64}), 1U, 0);
  } else if (name == "queue") {
    aclshmemx_udma_qp_put_nbi(inside, inside, none, 1U, 0, uint32_t{kCores});
  } else if (name == "relay") {
    aclshmemx_udma_relay_put_nbi(inside, inside, none, 1U, right(), aclshmem_my_pe());
  } else if (name == "quiet") {
    aclshmemx_udma_quiet(no_pe);
  } else if (name == "team") {
    aclshmemx_roce_barrier(nullptr);
  } else if (name == "atomic") {
    aclshmemx_udma_atomic_add(outside.data(), 1, 0);
  } else if (name == "signal") {
    aclshmemx_udma_put_signal_nbi(inside, inside, 1U, reinterpret_cast<uint64_t*>(inside + 1), uint64_t{1}, 0);
  }
}

}  // namespace

PE_PART(engines) {
  if (argc == 2 && std::string(argv[1]) == "before-init") {
    aclshmemx_udma_quiet(0);
  }
  test_queues();
  shmem_init();
  CHECK(aclshmemx_set_qp_num(ACLSHMEM_DATA_OP_UDMA, 1) == ACLSHMEM_NOT_SUPPORTED);
  if (argc == 2) {
    mistake(argv[1]);
    return 0;
  }
  Work work{static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<int32_t*>(aclshmem_calloc(kCores, sizeof(int32_t)))};
  const auto run = [](shmemx_kernel_t kernel, void* argument) { CHECK(shmemx_launch(kCores, kernel, argument) == 0); };
  run(roce<uint8_t>, &work);
  run(roce<int64_t>, &work);
  run(sdma<float>, &work);
  run(sdma<int16_t>, &work);
  run(udma<aclshmem_half_t>, &work);
  run(udma<uint32_t>, &work);
  Signalled signalled{work, static_cast<uint64_t*>(aclshmem_calloc(kCores, sizeof(uint64_t)))};
  run(put_signal, &signalled);
#define RUN(NAME, T)           \
  run(atomics_roce<T>, &work); \
  run(atomics_udma<T>, &work);
  ACLSHMEM_ATOMIC_TYPES(RUN)
  run(floats_roce, &work);
  run(floats_udma, &work);
  Synchronised synchronised{work, ACLSHMEM_TEAM_INVALID};
  CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, aclshmem_n_pes(), &synchronised.team) == 0);
  run(syncs, &synchronised);
  run(syncs_in_turn, nullptr);
  test_notifies(work);
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  return 0;
}
