/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_shuffle: moves blocks of KV caches between the PEs of a team. Included by shmemx.h, whose conventions hold.
 *
 * A cache is described (shmemx_kv_cache_t), a plan says which blocks go where (shmemx_kv_plan_*), and an operator
 * carries plans out (shmemx_kv_op_*, shmemx_kv_shuffle*).
 */
#ifndef SHMEM_SHMEMX_KV_H
#define SHMEM_SHMEMX_KV_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Caches ---- */

/* How K and V lie. "block" is [kv_heads][page_size][head_dim] elements; the order of these three does not matter. */
enum {
  SHMEMX_KV_APART = 0,       /* k and v: [layers][blocks]block each */
  SHMEMX_KV_BY_LAYER = 1,    /* k only: [layers][2][blocks]block: K and then V of each layer */
  SHMEMX_KV_INTERLEAVED = 2, /* k only: [layers][blocks][2]block: K and V of a block side by side */
  SHMEMX_KV_BY_BLOCK = 3,    /* k only: [blocks][layers][2]block: all layers of a block side by side */
  SHMEMX_KV_LATENT = 4       /* k only: [layers][blocks]block: there is no V, as in multi-head latent attention */
};

/* A cache in symmetric memory, the same on all PEs of the team. */
typedef struct shmemx_kv_cache_t {
  void* k;
  void* v;              /* NULL but with SHMEMX_KV_APART */
  int32_t format;       /* SHMEMX_KV_APART, ... */
  int32_t element_size; /* bytes: 1, 2, 4 or 8 */
  int64_t layers;
  int64_t blocks; /* of each layer: block b of a plan is block b of K and of V of every layer */
  int64_t kv_heads;
  int64_t page_size; /* tokens of a block */
  int64_t head_dim;
} shmemx_kv_cache_t;

/* ---- Plans: local objects, the caller's to destroy; several threads may read one at once ---- */

typedef struct shmemx_kv_plan shmemx_kv_plan_t;

/* Block src_block of PE src_pe goes to block dst_block of PE dst_pe. PEs by their number in the operator's team. */
typedef struct shmemx_kv_move_t {
  int64_t src_pe;
  int64_t src_block;
  int64_t dst_pe;
  int64_t dst_block;
} shmemx_kv_move_t;

enum {
  SHMEMX_KV_COPY = 0, /* source blocks stay as they are */
  SHMEMX_KV_MOVE = 1  /* source blocks that are nobody's destination are cleared: all their bytes are 0 */
};

/*
 * A plan of `count` moves, which all happen at once: every destination gets what its source held before the shuffle,
 * also where that is a destination itself (chains, cycles, swaps). The moves are the same on all PEs, in whatever
 * order. A move that is named twice is made once, and one of a block to itself leaves it as it is. Errors: -EINVAL a
 * block with two sources, with SHMEMX_KV_MOVE one with two destinations, a negative number, no such mode, NULL;
 * -ENOMEM. Blocks and PEs that are not there are found when the plan is carried out.
 */
SHMEM_API int shmemx_kv_plan_create(const shmemx_kv_move_t* moves, size_t count, int mode,
                                    shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/*
 * The plan of Ascend SHMEM's kv_shuffle. pair_table, the same on all PEs, is int64_t[2 * n_pes]: row p is {the PE that
 * p is paired with, operation}, where 0 sends and anything else receives. Pairs name each other, at most one of a pair
 * sends, and a PE may be paired with itself to be idle. PE `me` sends its block src_blocks[i] to its partner's block
 * dst_blocks[i], for i in 0..block_count-1; where it does not send, these three are ignored and may be NULL and 0.
 * Everything is copied. Errors: -EINVAL n_pes, me, block_count, NULL; -ENOMEM. What else is wrong is found when the
 * plan is carried out, so that the partner hears of it.
 */
SHMEM_API int shmemx_kv_plan_create_pairs(int n_pes, int me, const int64_t* pair_table, const int64_t* src_blocks,
                                          const int64_t* dst_blocks, int64_t block_count,
                                          shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/* NULL is nothing. */
SHMEM_API void shmemx_kv_plan_destroy(shmemx_kv_plan_t* plan) SHMEM_NOEXCEPT;

/* The moves of a plan, each once, by source PE, destination PE and source block; of a plan of pairs, what this PE
 * sends. The array is the plan's. Errors: -EINVAL NULL, or what is wrong with the tables of a plan of pairs. */
SHMEM_API int shmemx_kv_plan_moves(const shmemx_kv_plan_t* plan, const shmemx_kv_move_t** moves,
                                   size_t* count) SHMEM_NOEXCEPT;
/* Equal for plans of the same moves and mode (of pairs: of the same table), and for others as good as never. 0: NULL.
 */
SHMEM_API uint64_t shmemx_kv_plan_digest(const shmemx_kv_plan_t* plan) SHMEM_NOEXCEPT;

/* ---- Planning: plans that even out the tokens of PEs ---- */

/* A sequence that a PE holds. */
typedef struct shmemx_kv_sequence_t {
  int64_t pe;
  int64_t tokens;
  const int64_t* blocks;  /* its block table: where it lies in the PE's cache, in order */
  int64_t block_count;    /* at least as many as `tokens` take */
  const uint64_t* hashes; /* of the first hash_count blocks: equal numbers are equal contents; NULL: not known */
  int64_t hash_count;     /* 0..block_count */
} shmemx_kv_sequence_t;

enum {
  SHMEMX_KV_PAIR = 0,    /* as Ascend SHMEM's kv_shuffle: most with fewest tokens, and of two PEs one sends */
  SHMEMX_KV_BALANCED = 1 /* any PE to any PE, and as few blocks as will do */
};

typedef struct shmemx_kv_planning_t {
  int32_t planner; /* SHMEMX_KV_PAIR or SHMEMX_KV_BALANCED */
  int32_t mode;    /* SHMEMX_KV_COPY or SHMEMX_KV_MOVE, of the plan */
  int32_t n_pes;
  int32_t reserved;  /* 0 */
  int64_t blocks;    /* of each PE's cache */
  int64_t page_size; /* tokens of a block */
  double tolerance;  /* BALANCED, 0..1: see below */
} shmemx_kv_planning_t;

/*
 * A plan that moves whole sequences from PEs with many tokens to PEs with few, and into blocks that no sequence names:
 * so `sequences` has all that is in the caches, with 0 tokens what is not to move (blocks kept for their hashes, say).
 * Blocks that sequences of a PE share have the same hash in all of them. The plan is a pure function of the arguments;
 * all PEs pass the same ones. Nothing of the arguments is kept.
 *
 * SHMEMX_KV_BALANCED takes no PE past the mean, so that each token that moves brings two PEs nearer to it: no plan gets
 * as far with fewer, and what is left is what no whole sequence is short enough for. It sends only blocks with tokens
 * or hashes in them, and none whose hash the receiver has or is brought by another sequence. With a tolerance, a share
 * of the mean, PEs within it are left alone, and where others find no PE that is far enough below the mean, their
 * sequences go to such as they take past it by no more than the tolerance. PEs without room get nothing. With
 * SHMEMX_KV_MOVE sequences that share blocks stay where they are.
 *
 * SHMEMX_KV_PAIR sends whole block tables, to the lowest blocks that are free at the partner.
 *
 * Errors, which name the sequence: -EINVAL no sequences, a PE, a block or tokens that cannot be, a block table too
 * short for the tokens, a block that is named twice without the same hash each time, NULL; with SHMEMX_KV_PAIR also
 * -ENOBUFS a partner without room, and -EINVAL shared blocks that would be cleared; -ENOMEM.
 */
SHMEM_API int shmemx_kv_plan_balance(const shmemx_kv_sequence_t* sequences, size_t count,
                                     const shmemx_kv_planning_t* planning, shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/* Where a sequence lies once the plan has been carried out. The blocks are the plan's. */
typedef struct shmemx_kv_placement_t {
  int64_t pe;
  const int64_t* blocks;
  int64_t block_count; /* as before */
} shmemx_kv_placement_t;

/* Of sequences[index] of shmemx_kv_plan_balance. Errors: -EINVAL another kind of plan, no such sequence, NULL. */
SHMEM_API int shmemx_kv_plan_placement(const shmemx_kv_plan_t* plan, size_t index,
                                       shmemx_kv_placement_t* placement) SHMEM_NOEXCEPT;

/* ---- Shuffling ---- */

typedef struct shmemx_kv_op shmemx_kv_op_t;

enum {
  SHMEMX_KV_PATH_AUTO = 0,   /* what is fastest here */
  SHMEMX_KV_PATH_DIRECT = 1, /* loads and stores from cache to cache */
  SHMEMX_KV_PATH_SCRATCH = 2 /* through two buffers of each core, as processors need it that have such a memory */
};

typedef struct shmemx_kv_options_t {
  int32_t cores;        /* threads that copy, the calling one among them; 0: 2 */
  int32_t path;         /* SHMEMX_KV_PATH_AUTO, ... */
  size_t staging_bytes; /* of each PE, for blocks that are source and destination at once; 0: 16 MiB */
} shmemx_kv_options_t;

/*
 * Collective over the world, and so is destroy, as both take and give back symmetric memory. The PEs of `team` get an
 * operator with a team of the same PEs for itself, by a group of the GBA if there is one; several teams without common
 * PEs get theirs in one call, and a PE without a team gives SHMEM_TEAM_INVALID and gets an operator that it can only
 * destroy. `options` is the same on all PEs; NULL: all 0. The operator is used by one thread at a time. NULL may be
 * destroyed, on all PEs or on none. destroy waits for a shuffle that has been started.
 * Errors, the same on all PEs: -EINVAL options, or not the same on all; -ENOMEM; -EAGAIN no more threads. A team that
 * is none ends the job.
 */
SHMEM_API int shmemx_kv_op_create(shmem_team_t team, const shmemx_kv_options_t* options,
                                  shmemx_kv_op_t** op) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_op_destroy(shmemx_kv_op_t* op) SHMEM_NOEXCEPT;

/*
 * Collective over the operator's team; plan and cache are the same on all its PEs. A list of moves: everything is
 * checked on all PEs before anything moves, and if anything is wrong on one of them, all get an error and all caches
 * are untouched; that goes for a PE, too, that gives NULL as its plan as it could not make one. Returns 0 when all
 * blocks of all PEs are where they belong.
 *
 * A plan of pairs: only partners wait for each other, so it returns when this PE's blocks have been sent or received,
 * at once on a PE whose pair is idle. What is wrong with one of them is told to the other before anything moves.
 *
 * After an error that comes later (a PE has died, or does not come in time) the destination blocks, with SHMEMX_KV_MOVE
 * the source blocks too, are undefined, and all others are untouched. A PE that was copying when another one gave up
 * may write to destination blocks until its own call returns. The operator carries out no more lists of moves then.
 * Errors: -EINVAL plan, cache or op, as the text says, or PEs that differ in plan or cache; -ECONNABORTED another PE's
 * call failed; -EBUSY a shuffle is started; -EPROTO the partner of a pair has made another number of calls; -ETIMEDOUT
 * (see SHMEM_BARRIER_TIMEOUT); -EOWNERDEAD a PE has died; -ECANCELED the job was ended; -ENOMEM.
 */
SHMEM_API int shmemx_kv_shuffle(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                const shmemx_kv_cache_t* cache) SHMEM_NOEXCEPT;

/*
 * The same in two phases: `start` gives the work to a thread of the operator. Until test has said that it is done, or
 * wait has returned, the plan and the blocks that it names belong to it (`cache` itself is copied). test: *done is 1 if
 * the shuffle has ended, and the return value is the shuffle's; else both are 0. Errors besides those of the shuffle:
 * start: -EBUSY the last one's end has not been seen, -EAGAIN no more threads; test and wait: -EINVAL nothing was
 * started.
 */
SHMEM_API int shmemx_kv_shuffle_start(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                      const shmemx_kv_cache_t* cache) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_shuffle_test(shmemx_kv_op_t* op, int* done) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_shuffle_wait(shmemx_kv_op_t* op) SHMEM_NOEXCEPT;

struct shmemx_stream_t;
/* In the order of the stream (NULL: the library's own); what goes wrong is printed, and told by
 * shmemx_stream_synchronize. Operator and plan belong to it until then; `cache` is copied. */
SHMEM_API void shmemx_kv_shuffle_on_stream(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                           const shmemx_kv_cache_t* cache,
                                           struct shmemx_stream_t* stream) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
