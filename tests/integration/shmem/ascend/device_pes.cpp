// SPDX-License-Identifier: Apache-2.0
// Ascend SHMEM's calls made by kernels: puts, gets, blocks, tensors and signals, of every type, on several cores.
#include "areas.hpp"

namespace {

using namespace areas;

#define DEFINE_KERNELS(NAME, T)                                                                                        \
  void rma_##NAME(shmemx_core_t* /*core*/, void* argument) {                                                           \
    const Work& work = *static_cast<Work*>(argument);                                                                  \
    using A = Areas<T>;                                                                                                \
    const int to = right();                                                                                            \
    moves<T>(work, left(), 13, [&](const A& a) { aclshmem_##NAME##_put(a.dest, a.source, 13, to); });                  \
    moves<T>(work, to, 13, [&](const A& a) { aclshmem_##NAME##_get(a.dest, a.source, 13, to); });                      \
    moves<T>(work, left(), 13, [&](const A& a) { aclshmem_##NAME##_put_nbi(a.dest, a.source, 13, to); });              \
    moves<T>(work, to, 13, [&](const A& a) { aclshmem_##NAME##_get_nbi(a.dest, a.source, 13, to); });                  \
    moves<T>(work, left(), 13, [&](const A& a) { aclshmem_##NAME##_iput(a.dest, a.source, 1, 1, 13, to); });           \
    moves<T>(work, to, 13, [&](const A& a) { aclshmem_##NAME##_iget(a.dest, a.source, 1, 1, 13, to); });               \
    moves<T>(work, left(), 1, [&](const A& a) { aclshmem_##NAME##_p(a.dest, a.source[0], to); });                      \
    moves<T>(work, to, 1, [&](const A& a) { a.dest[0] = aclshmem_##NAME##_g(a.source, to); });                         \
    moves<T>(work, left(), 13,                                                                                         \
             [&](const A& a) { aclshmem_##NAME##_put_nbi(global(a.dest), global(a.source), 13U, to); });               \
    moves<T>(work, to, 13, [&](const A& a) { aclshmem_##NAME##_get_nbi(global(a.dest), global(a.source), 13U, to); }); \
    moves_blocks<T>(work, left(), [&](const A& a) { aclshmem_##NAME##_put_nbi(a.dest, a.source, kBlocks, to); });      \
    moves_blocks<T>(work, to, [&](const A& a) { aclshmem_##NAME##_get_nbi(a.dest, a.source, kBlocks, to); });          \
    moves_blocks<T>(work, left(), [&](const A& a) {                                                                    \
      aclshmem_##NAME##_put_nbi(global(a.dest), AscendC::LocalTensor<T>(a.source, kRoom), kBlocks, to);                \
    });                                                                                                                \
    moves_blocks<T>(work, to, [&](const A& a) {                                                                        \
      aclshmem_##NAME##_get_nbi(AscendC::LocalTensor<T>(a.dest, kRoom), global(a.source), kBlocks, to);                \
    });                                                                                                                \
  }                                                                                                                    \
  void signal_##NAME(shmemx_core_t* /*core*/, void* argument) {                                                        \
    const Work& work = *static_cast<Work*>(argument);                                                                  \
    using A = Areas<T>;                                                                                                \
    DEFINE_SIGNALLED(NAME, T, put_signal)                                                                              \
    DEFINE_SIGNALLED(NAME, T, put_signal_nbi)                                                                          \
  }
#define DEFINE_SIGNALLED(NAME, T, CALL)                                                                             \
  moves<T>(work, left(), 13, [&](const A& a) {                                                                      \
    aclshmem_##NAME##_##CALL(a.dest, a.source, 13, a.signal, 3, ACLSHMEM_SIGNAL_SET, right());                      \
    arrives(a.signal, 3);                                                                                           \
  });                                                                                                               \
  moves<T>(work, left(), 13, [&](const A& a) {                                                                      \
    aclshmem_##NAME##_##CALL(global(a.dest), global(a.source), 13U, a.signal, 3, ACLSHMEM_SIGNAL_ADD, right());     \
    arrives(a.signal, 3);                                                                                           \
  });                                                                                                               \
  moves_blocks<T>(work, left(), [&](const A& a) {                                                                   \
    aclshmem_##NAME##_##CALL(a.dest, a.source, kBlocks, a.signal, 3, ACLSHMEM_SIGNAL_SET, right());                 \
    arrives(a.signal, 3);                                                                                           \
  });                                                                                                               \
  moves_blocks<T>(work, left(), [&](const A& a) {                                                                   \
    aclshmem_##NAME##_##CALL(global(a.dest), global(a.source), kBlocks, a.signal, 3, ACLSHMEM_SIGNAL_SET, right()); \
    arrives(a.signal, 3);                                                                                           \
  });
ACLSHMEM_DEVICE_TYPES(DEFINE_KERNELS)

void bytes(shmemx_core_t* /*core*/, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  using A = Areas<char>;
  moves<char>(work, left(), 48, [](const A& a) { aclshmem_put128(a.dest, a.source, 3, right()); });
  moves<char>(work, left(), 48, [](const A& a) { aclshmem_iput64(a.dest, a.source, 1, 1, 6, right()); });
  moves<char>(work, right(), 48, [](const A& a) { aclshmem_get16_nbi(a.dest, a.source, 24, right()); });
  moves<char>(work, left(), 48, [](const A& a) { aclshmem_putmem(a.dest, a.source, 48, right()); });
  for (const bool nbi : {false, true}) {
    moves<char>(work, left(), 48, [nbi](const A& a) {
      (nbi ? aclshmem_putmem_signal_nbi : aclshmem_putmem_signal)(a.dest, a.source, 48, a.signal, 5,
                                                                  ACLSHMEM_SIGNAL_SET, right());
      arrives(a.signal, 5);
    });
    moves<char>(work, left(), 48, [nbi](const A& a) {
      (nbi ? aclshmem_put32_signal_nbi : aclshmem_put32_signal)(a.dest, a.source, 12, a.signal, 5, ACLSHMEM_SIGNAL_ADD,
                                                                right());
      arrives(a.signal, 5);
    });
  }
  const Areas<char> a(work);
  CHECK(aclshmem_ptr(a.dest, aclshmem_my_pe()) == a.dest);
  CHECK(aclshmem_roce_ptr(a.dest, right()) == aclshmem_ptr(a.dest, right()));
  CHECK(aclshmem_team_pe_mapping(ACLSHMEM_TEAM_WORLD, 0) == 0);
  CHECK(aclshmem_team_pe_mapping(ACLSHMEM_TEAM_WORLD, aclshmem_n_pes()) == -1);
}

/// The engine calls: through scratch that is larger or smaller than the data, by address and by offset.
template <typename T>
void engine(shmemx_core_t* /*core*/, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  using A = Areas<T>;
  T own[kRoom];
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an offset in the core's own memory
  T* const offset = reinterpret_cast<T*>(uintptr_t{1024});
  const AscendC::LocalTensor<T> scratch(offset, 4);
  const struct {
    T* buffer;
    uint32_t size;
  } ways[] = {{own, sizeof own}, {offset, 3 * sizeof(T)}, {nullptr, 20}};
  for (const auto& way : ways) {
    moves<T>(work, left(), 13, [&](const A& a) {
      aclshmemx_mte_put_nbi(a.dest, a.source, way.buffer, way.size, 13U, right(), EVENT_ID0);
    });
    moves<T>(work, right(), 13, [&](const A& a) {
      aclshmemx_mte_get_nbi(a.dest, a.source, way.buffer, way.size, 13U, right(), EVENT_ID0);
    });
    moves_blocks<T>(work, left(), [&](const A& a) {
      aclshmemx_mte_put_nbi(a.dest, a.source, way.buffer, way.size, kBlocks, right(), EVENT_ID1);
    });
    moves_blocks<T>(work, right(), [&](const A& a) {
      aclshmemx_mte_get_nbi(a.dest, a.source, way.buffer, way.size, kBlocks, right(), EVENT_ID1);
    });
  }
  moves<T>(work, left(), 13, [&](const A& a) {
    aclshmemx_mte_put_nbi(global(a.dest), global(a.source), scratch, 13U, right(), EVENT_ID0);
  });
  moves_blocks<T>(work, right(), [&](const A& a) {
    aclshmemx_mte_get_nbi(global(a.dest), global(a.source), scratch, kBlocks, right(), EVENT_ID0);
  });
  // From and to the core's own memory.
  const AscendC::LocalTensor<T> local(offset, kRoom);
  moves<T>(work, left(), 13, [&](const A& a) {
    AscendC::DataCopy(local, global(a.source), 13);
    aclshmemx_mte_put_nbi(a.dest, offset, 13U, right(), EVENT_ID0);
  });
  moves<T>(work, right(), 13, [&](const A& a) {
    aclshmemx_mte_get_nbi(offset, a.source, 13U, right(), EVENT_ID0);
    AscendC::DataCopy(global(a.dest), local, 13);
  });
  moves_blocks<T>(work, left(), [&](const A& a) {
    AscendC::DataCopy(local, global(a.source), kRoom);
    aclshmemx_mte_put_nbi(global(a.dest), local, kBlocks, right(), EVENT_ID0);
  });
  moves<T>(work, right(), 13, [&](const A& a) {
    aclshmemx_mte_get_nbi(local, global(a.source), 13U, right(), EVENT_ID0);
    AscendC::DataCopy(global(a.dest), local, 13);
    aclshmemx_mte_quiet();
  });
}

}  // namespace

PE_PART(device) {
  shmem_init();
  constexpr size_t kCores = 3;
  Work work{static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<int32_t*>(aclshmem_calloc(kCores, sizeof(int32_t)))};
  constexpr int kAll = static_cast<int>(kCores);
#define RUN(NAME, T)                                  \
  CHECK(shmemx_launch(kAll, rma_##NAME, &work) == 0); \
  CHECK(shmemx_launch(kAll, signal_##NAME, &work) == 0);
  ACLSHMEM_DEVICE_TYPES(RUN)
  CHECK(shmemx_launch(kAll, bytes, &work) == 0);
  CHECK(shmemx_launch(1, engine<uint8_t>, &work) == 0);
  CHECK(shmemx_launch(kAll, engine<aclshmem_half_t>, &work) == 0);
  CHECK(shmemx_launch(kAll, engine<int64_t>, &work) == 0);
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  return 0;
}
