// SPDX-License-Identifier: Apache-2.0
// A PE of a job on several nodes: kv_barrier SHUFFLES. The first and the last PE swap a block that often; nothing
// else synchronises them meanwhile.
#include <shmemx_kv.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr int kBlocks = 4;
constexpr std::size_t kElements = 256;  // of one block

/// The block is filled with a PE's number.
bool is_filled(const unsigned char* block, int pe) {
  for (std::size_t i = 0; i < kElements; ++i) {
    if (block[i] != static_cast<unsigned char>(pe + 1)) {
      return false;
    }
  }
  return true;
}

}  // namespace

PE_PART(kv_barrier) {
  const int shuffles = argc > 1 ? std::atoi(argv[1]) : 1;
  shmem_init();
  const int me = shmem_my_pe();
  const int last = shmem_n_pes() - 1;
  auto* memory = static_cast<unsigned char*>(shmem_malloc(2 * kBlocks * kElements));
  std::memset(memory, me + 1, 2 * kBlocks * kElements);
  shmemx_kv_cache_t cache{};
  cache.k = memory;
  cache.format = SHMEMX_KV_BY_LAYER;
  cache.element_size = 1;
  cache.layers = 1;
  cache.blocks = kBlocks;
  cache.kv_heads = 1;
  cache.page_size = 1;
  cache.head_dim = kElements;
  const shmemx_kv_move_t moves[] = {{0, 1, last, 1}, {last, 1, 0, 1}};
  shmemx_kv_plan_t* plan = nullptr;
  shmemx_kv_op_t* op = nullptr;
  bool good = shmemx_kv_plan_create(moves, 2, SHMEMX_KV_COPY, &plan) == 0 &&
              shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, &op) == 0;
  for (int i = 1; i <= shuffles && good; ++i) {
    good = shmemx_kv_shuffle(op, plan, &cache) == 0;
    const int expected = me == 0 || me == last ? (i % 2 == 1 ? last - me : me) : me;
    good = good && is_filled(memory + kElements, expected) && is_filled(memory + (kBlocks + 1) * kElements, expected) &&
           is_filled(memory, me);
  }
  std::printf("PE %d: %s %s\n", me, good ? "all blocks are right" : "WRONG", good ? "" : shmemx_error_text());
  std::fflush(stdout);
  shmemx_kv_op_destroy(op);
  shmemx_kv_plan_destroy(plan);
  shmem_finalize();
  return good ? 0 : 1;
}
