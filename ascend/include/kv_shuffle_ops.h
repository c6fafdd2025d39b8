/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator of Ascend SHMEM's example kv_shuffle, with its constructor and calls. shmemx_kv.h has the rest of
 * kv_shuffle.
 */
#ifndef SHMEM_KV_SHUFFLE_OPS_H
#define SHMEM_KV_SHUFFLE_OPS_H

#include <stdint.h>

#include "shmemx.h"
#include "shmemx_kv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owned by an object of the class below. */
typedef struct shmemx_kv_ops shmemx_kv_ops_t;

/*
 * For programs in C or other languages: the constructor, compute and destructor of KVShuffleOps, described there.
 * create returns NULL only without memory for the object. The other calls accept NULL.
 */
SHMEM_API shmemx_kv_ops_t* shmemx_kv_ops_create(uint32_t block_dims, struct shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* The same by one of SHMEMX_KV_PATH_*. */
SHMEM_API shmemx_kv_ops_t* shmemx_kv_ops_create_by_path(uint32_t block_dims, struct shmemx_stream_t* stream,
                                                        int path) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_kv_ops_compute(shmemx_kv_ops_t* ops, uint8_t* k_cache, uint8_t* v_cache,
                                     const uint8_t* global_shuffle_table, const uint8_t* src_block_table,
                                     const uint8_t* dst_block_table, int64_t block_nums, int64_t kv_head_num,
                                     int64_t page_size, int64_t head_dim) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_kv_ops_destroy(shmemx_kv_ops_t* ops) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"

/* Copies blocks of K and V caches between pairs of PEs. Used by one thread at a time. */
class KVShuffleOps {
 public:
  /*
   * Collective over the world. block_dims: threads that copy, the stream's among them, the same on all PEs; any number
   * above 0. stream: an aclrtStream or shmemx_stream_t*, or nullptr for the library's own. path: how a thread copies:
   * SHMEMX_KV_PATH_DIRECT from cache to cache, SHMEMX_KV_PATH_SCRATCH through two buffers of 32 KiB of its own, one of
   * which is filled while the other is emptied where an engine copies; SHMEMX_KV_PATH_AUTO is direct here. Errors are
   * printed, and every compute fails then.
   */
  KVShuffleOps(uint32_t block_dims, void* stream, int path = SHMEMX_KV_PATH_AUTO)
      : ops_(shmemx_kv_ops_create_by_path(block_dims, static_cast<shmemx_stream_t*>(stream), path)) {}
  KVShuffleOps(const KVShuffleOps&) = delete;
  KVShuffleOps& operator=(const KVShuffleOps&) = delete;
  /* Collective over the world. Waits for its work in the stream, which may have been destroyed. */
  ~KVShuffleOps() { shmemx_kv_ops_destroy(ops_); }

  /*
   * In the order of the stream: copies block src_block_table[i] of this PE to block dst_block_table[i] of the PE that
   * it is paired with, for i in 0..block_nums - 1, where its operation is 0 (send); otherwise it receives, or is idle,
   * and the last four are ignored. Blocks are [kv_head_num][page_size][head_dim] bytes, of K and V alike. Made the same
   * number of times on all PEs.
   *
   * global_shuffle_table, the same on all PEs, is int64_t[n_pes][2]: {the PE that this one is paired with, operation};
   * block tables are int64_t[block_nums]. They are read in stream order, and belong to the stream until then.
   *
   * k_cache and v_cache are in the symmetric heap, at the same place on all PEs. They end with their allocation
   * (or where the other one begins in it), and no block beyond is read or written. Everything is checked before
   * anything moves; errors are printed, make the partner's compute fail as well, and are returned by
   * aclrtSynchronizeStream or shmemx_stream_synchronize (errors: those of shmemx_kv_shuffle).
   */
  void compute(uint8_t* k_cache, uint8_t* v_cache, uint8_t* global_shuffle_table, uint8_t* src_block_table,
               uint8_t* dst_block_table, int64_t block_nums, int64_t kv_head_num, int64_t page_size, int64_t head_dim) {
    shmemx_kv_ops_compute(ops_, k_cache, v_cache, global_shuffle_table, src_block_table, dst_block_table, block_nums,
                          kv_head_num, page_size, head_dim);
  }

 private:
  shmemx_kv_ops_t* ops_;
};
#endif

#endif
