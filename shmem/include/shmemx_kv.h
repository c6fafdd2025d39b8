/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_shuffle: moves blocks of KV caches between the PEs of a team. Included by shmemx.h, whose conventions hold.
 *
 * shmemx_kv_cache_t describes a cache, a plan says which blocks go where (shmemx_kv_plan_*), and an operator executes
 * plans (shmemx_kv_op_*, shmemx_kv_shuffle*).
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

/* The layout of K and V. "block" is [kv_heads][page_size][head_dim] elements, in any order of these three. */
enum {
  SHMEMX_KV_APART = 0,       /* k and v: [layers][blocks]block each */
  SHMEMX_KV_BY_LAYER = 1,    /* k only: [layers][2][blocks]block: K and then V of each layer */
  SHMEMX_KV_INTERLEAVED = 2, /* k only: [layers][blocks][2]block: K and V of a block are adjacent */
  SHMEMX_KV_BY_BLOCK = 3,    /* k only: [blocks][layers][2]block: all layers of a block are adjacent */
  SHMEMX_KV_LATENT = 4       /* k only: [layers][blocks]block: no V, as in multi-head latent attention */
};

/* A cache in symmetric memory, the same on all PEs of the team. In registered memory that is private to the process of
 * some PE (shmemx_memory_register), the kernel copies the blocks for that PE, and no PE helps another one to send. */
typedef struct shmemx_kv_cache_t {
  void* k;
  void* v;              /* NULL except with SHMEMX_KV_APART */
  int32_t format;       /* SHMEMX_KV_APART, ... */
  int32_t element_size; /* bytes: 1, 2, 4 or 8 */
  int64_t layers;
  int64_t blocks; /* of each layer: block b of a plan is block b of K and of V of every layer */
  int64_t kv_heads;
  int64_t page_size; /* tokens of a block */
  int64_t head_dim;
} shmemx_kv_cache_t;

/* ---- Plans: local objects. The caller destroys them. Several threads may read a plan at once. ---- */

typedef struct shmemx_kv_plan shmemx_kv_plan_t;

/* Block src_block of PE src_pe goes to block dst_block of PE dst_pe. PEs are numbers in the operator's team. */
typedef struct shmemx_kv_move_t {
  int64_t src_pe;
  int64_t src_block;
  int64_t dst_pe;
  int64_t dst_block;
} shmemx_kv_move_t;

enum {
  SHMEMX_KV_COPY = 0, /* source blocks do not change */
  SHMEMX_KV_MOVE = 1  /* source blocks that are not a destination are cleared: all their bytes become 0 */
};

/*
 * A plan of `count` moves, which all happen at once: every destination gets what its source held before the shuffle,
 * even if that source is a destination itself (chains, cycles, swaps). All PEs pass the same moves, in any order.
 * Repeated moves count once, and a move of a block to itself does nothing. Errors: -EINVAL a block with two sources,
 * with SHMEMX_KV_MOVE a block with two destinations, a negative number, an invalid mode, NULL; -ENOMEM. Blocks and PEs
 * out of range are reported when the plan is executed.
 */
SHMEM_API int shmemx_kv_plan_create(const shmemx_kv_move_t* moves, size_t count, int mode,
                                    shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/*
 * The plan of Ascend SHMEM's kv_shuffle. pair_table, the same on all PEs, is int64_t[2 * n_pes]: row p is {the PE that
 * p is paired with, operation}, where 0 sends and anything else receives. Partners name each other, at most one of them
 * sends, and a PE that is paired with itself is idle. PE `me` sends its block src_blocks[i] to its partner's block
 * dst_blocks[i], for i in 0..block_count-1. If it does not send, these three are ignored and may be NULL and 0. The
 * tables are copied. Errors: -EINVAL n_pes, me, block_count, NULL; -ENOMEM. Other errors are reported when the plan is
 * executed, so that the partner is told about them.
 */
SHMEM_API int shmemx_kv_plan_create_pairs(int n_pes, int me, const int64_t* pair_table, const int64_t* src_blocks,
                                          const int64_t* dst_blocks, int64_t block_count,
                                          shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/* NULL is ignored. */
SHMEM_API void shmemx_kv_plan_destroy(shmemx_kv_plan_t* plan) SHMEM_NOEXCEPT;

/* The moves of a plan, each once, sorted by source PE, destination PE and source block; for a plan of pairs, what this
 * PE sends. The plan owns the array. Errors: -EINVAL NULL, or invalid tables of a plan of pairs. */
SHMEM_API int shmemx_kv_plan_moves(const shmemx_kv_plan_t* plan, const shmemx_kv_move_t** moves,
                                   size_t* count) SHMEM_NOEXCEPT;
/* Equal for plans of the same moves and mode (plans of pairs: of the same pair table), and almost certainly different
 * otherwise. 0: NULL. */
SHMEM_API uint64_t shmemx_kv_plan_digest(const shmemx_kv_plan_t* plan) SHMEM_NOEXCEPT;

/* ---- Planning: plans that balance the tokens of PEs ---- */

/* A sequence that a PE holds. */
typedef struct shmemx_kv_sequence_t {
  int64_t pe;
  int64_t tokens;
  const int64_t* blocks;  /* its block table: its blocks of the PE's cache, in order */
  int64_t block_count;    /* at least what `tokens` fill */
  const uint64_t* hashes; /* of the first hash_count blocks: equal numbers are equal contents; NULL: unknown */
  int64_t hash_count;     /* 0..block_count */
} shmemx_kv_sequence_t;

enum {
  SHMEMX_KV_PAIR = 0,    /* Ascend SHMEM's kv_shuffle: pairs of most with fewest tokens, in which one PE sends */
  SHMEMX_KV_BALANCED = 1 /* any PE to any PE, with as few blocks as possible */
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
 * A plan that moves whole sequences from PEs with many tokens to PEs with few, into blocks that no sequence names. So
 * `sequences` lists everything in the caches; what must not move (blocks kept for their hashes, for instance) has 0
 * tokens. Blocks that sequences of a PE share have the same hash in all of them. The plan is a pure function of the
 * arguments, which are the same on all PEs. Everything is copied.
 *
 * SHMEMX_KV_BALANCED takes no PE past the mean, so that each token that moves brings two PEs nearer to it: no plan
 * achieves as much with fewer tokens, and no whole sequence is short enough for the rest. It sends only blocks that
 * contain tokens or hashes, and none whose hash the receiver has or gets with another sequence. With a tolerance, a
 * share of the mean, PEs within it are left alone, and sequences of other PEs may take a PE past the mean by no more
 * than the tolerance if no PE is far enough below the mean. PEs without room get nothing. With SHMEMX_KV_MOVE,
 * sequences that share blocks stay where they are.
 *
 * SHMEMX_KV_PAIR sends whole block tables to the lowest free blocks of the partner.
 *
 * Errors, which name the sequence: -EINVAL no sequences, an invalid PE, block or number of tokens, a block table too
 * short for the tokens, a block that is named twice without the same hash each time, NULL; with SHMEMX_KV_PAIR also
 * -ENOBUFS a partner without room, and -EINVAL shared blocks that would be cleared; -ENOMEM.
 */
SHMEM_API int shmemx_kv_plan_balance(const shmemx_kv_sequence_t* sequences, size_t count,
                                     const shmemx_kv_planning_t* planning, shmemx_kv_plan_t** plan) SHMEM_NOEXCEPT;

/* The place of a sequence after the plan was executed. The plan owns the blocks. */
typedef struct shmemx_kv_placement_t {
  int64_t pe;
  const int64_t* blocks;
  int64_t block_count; /* as before */
} shmemx_kv_placement_t;

/* The place of sequences[index] of shmemx_kv_plan_balance. Errors: -EINVAL another kind of plan, index out of range,
 * NULL. */
SHMEM_API int shmemx_kv_plan_placement(const shmemx_kv_plan_t* plan, size_t index,
                                       shmemx_kv_placement_t* placement) SHMEM_NOEXCEPT;

/* ---- Shuffling ---- */

typedef struct shmemx_kv_op shmemx_kv_op_t;

enum {
  SHMEMX_KV_PATH_AUTO = 0,   /* the fastest one */
  SHMEMX_KV_PATH_DIRECT = 1, /* loads and stores from cache to cache */
  SHMEMX_KV_PATH_SCRATCH = 2 /* through two buffers of each core, for processors whose cores need scratch memory */
};

typedef struct shmemx_kv_options_t {
  int32_t cores;        /* threads that copy, including the calling one; 0: 2 */
  int32_t path;         /* SHMEMX_KV_PATH_AUTO, ... */
  size_t staging_bytes; /* memory of each PE for blocks whose destination is still to be read; 0: 16 MiB */
} shmemx_kv_options_t;

/*
 * Create and destroy are collective over the world, because they allocate and free symmetric memory. The PEs of `team`
 * get an operator with a team of its own for the same PEs, which uses a group of the GBA if one is available. Several
 * teams without common PEs get their operators in one call. A PE without a team passes SHMEM_TEAM_INVALID and gets an
 * operator that it can only destroy. `options` is the same on all PEs; NULL: all 0. The operator is used by one thread
 * at a time. NULL may be destroyed, on all PEs or on none. Destroy waits for a started shuffle.
 * Errors, the same on all PEs: -EINVAL invalid or different options; -ENOMEM; -EAGAIN no more threads. An invalid team
 * ends the job.
 */
SHMEM_API int shmemx_kv_op_create(shmem_team_t team, const shmemx_kv_options_t* options,
                                  shmemx_kv_op_t** op) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_op_destroy(shmemx_kv_op_t* op) SHMEM_NOEXCEPT;

/*
 * Collective over the operator's team; plan and cache are the same on all its PEs. A list of moves: everything is
 * checked on all PEs before anything moves. If there is an error on one of them, all return an error, and no cache has
 * changed. A PE that could not make its plan passes NULL, which is such an error. Returns 0 when all blocks of all PEs
 * are at their destinations.
 *
 * A plan of pairs: only partners wait for each other. Returns when this PE's blocks have been sent or received, at once
 * if its pair is idle. An error of one partner is told to the other before anything moves.
 *
 * After a later error (a PE has died, does not come in time, or the kernel does not copy into private memory) the
 * destination blocks, with SHMEMX_KV_MOVE the source blocks too, are undefined, and all others are unchanged. A PE that
 * was copying when another one gave up may write to destination blocks until its own call returns. The operator
 * executes no more lists of moves then.
 * Errors: -EINVAL invalid plan, cache or op, or PEs that differ in plan or cache; -ECONNABORTED another PE's call
 * failed; -EBUSY a shuffle is started; -EPROTO the partner of a pair has made another number of calls; -ETIMEDOUT (see
 * SHMEM_BARRIER_TIMEOUT); -EOWNERDEAD a PE has died; -EACCES, -EFAULT the kernel does not copy into private memory of a
 * PE, or that is not mapped any more; -ECANCELED the job was ended; -ENOMEM.
 */
SHMEM_API int shmemx_kv_shuffle(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                const shmemx_kv_cache_t* cache) SHMEM_NOEXCEPT;

/*
 * The same in two phases: `start` hands the shuffle to a thread of the operator. Do not use the plan, or the blocks
 * that it names, before test has reported the end or wait has returned (`cache` itself is copied). test: if the shuffle
 * has ended, *done is 1, and the return value is the shuffle's; otherwise both are 0. Additional errors: start: -EBUSY
 * the end of the last shuffle was not reported yet, -EAGAIN no more threads; test and wait: -EINVAL nothing was
 * started.
 */
SHMEM_API int shmemx_kv_shuffle_start(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                      const shmemx_kv_cache_t* cache) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_shuffle_test(shmemx_kv_op_t* op, int* done) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_shuffle_wait(shmemx_kv_op_t* op) SHMEM_NOEXCEPT;

/* ---- Counters of an operator on this PE, since it was created ---- */

typedef struct shmemx_kv_stats_t {
  uint64_t shuffles;    /* that have ended without an error */
  uint64_t sent_blocks; /* that went to other PEs; with several layers, each counts once */
  uint64_t sent_bytes;  /* of those blocks */
  uint64_t time_ns;     /* of all shuffles, also of those that failed: from the call until this PE knew of the end */
  /* Shuffles that have failed, by cause. Calls that could not begin (-EBUSY) do not count. */
  uint64_t failed_invalid; /* -EINVAL: a plan or cache, or PEs that differ */
  uint64_t failed_aborted; /* -ECONNABORTED: another PE's call failed */
  uint64_t failed_dead;    /* -EOWNERDEAD */
  uint64_t failed_timeout; /* -ETIMEDOUT */
  uint64_t failed_other;
  uint64_t metrics_port; /* 0: none */
  uint64_t reserved[6];
} shmemx_kv_stats_t;

/* Local; any thread may call it. Fills all of `stats`. Errors: -EINVAL NULL. */
SHMEM_API int shmemx_kv_op_stats(const shmemx_kv_op_t* op, shmemx_kv_stats_t* stats) SHMEM_NOEXCEPT;

/*
 * Local: from now on, until it is destroyed, the operator answers HTTP requests for /metrics on this PE with these
 * counters, and a histogram of the times, as OpenMetrics text. `address` is a TCP port of 127.0.0.1 ("9400"), or an
 * address and a port ("0.0.0.0:9400"); PEs of one node need ports of their own, for which "0" stands (see
 * metrics_port). Everyone who can connect can read them. Once for each operator. Errors: -EINVAL address, NULL;
 * -EALREADY it answers already; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES the address cannot be used; -EOPNOTSUPP
 * libmicrohttpd is missing; -EAGAIN no more threads; -ENOMEM.
 */
SHMEM_API int shmemx_kv_op_metrics(shmemx_kv_op_t* op, const char* address) SHMEM_NOEXCEPT;

struct shmemx_stream_t;
/* In the order of the stream (NULL: the library's own). Errors are printed, and returned by shmemx_stream_synchronize.
 * Do not use operator and plan before that; `cache` is copied. */
SHMEM_API void shmemx_kv_shuffle_on_stream(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                           const shmemx_kv_cache_t* cache,
                                           struct shmemx_stream_t* stream) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
