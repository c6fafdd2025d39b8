/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For interfaces with other names, such as aclshmem.h. The calls do the same as those of shmem.h, but elements have a
 * size in place of a type, and messages name `call`, the name that the user wrote. `call` is a constant
 * that lives as long as the program.
 *
 * On a core of a kernel they are the core's. On the host those without a stream begin after the work of the library's
 * own stream, as if they were in it too.
 */
#ifndef SHMEM_SHMEMX_INTERFACE_H
#define SHMEM_SHMEMX_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"
#include "shmemx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for the work of the library's own stream, if it has any; errors are left to shmemx_stream_synchronize. Does
 * nothing on a core, and where the library does not run. */
SHMEM_API void shmemx_await_default_stream(void) SHMEM_NOEXCEPT;

/* ---- Teams by number ----
 *
 * Where a team is a number: SHMEM_TEAM_WORLD is 0, SHMEM_TEAM_SHARED 1, SHMEM_TEAM_INVALID -1. Messages name teams so.
 */
#ifdef __cplusplus
#define SHMEMX_INLINE inline
#else
#define SHMEMX_INLINE static inline
#endif
SHMEMX_INLINE shmem_team_t shmemx_team_by_number(int number) SHMEM_NOEXCEPT {
  return (shmem_team_t)((intptr_t)number + 1); /* NOLINT(performance-no-int-to-ptr) */
}
/* -1 for SHMEM_TEAM_INVALID. */
SHMEMX_INLINE int shmemx_team_number(shmem_team_t team) SHMEM_NOEXCEPT {
  return (int)((intptr_t)team - 1);
}

/* ---- Copies ---- */

/* shmem_put and shmem_get of `nelems` elements of `size` bytes. */
SHMEM_API void shmemx_put_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                                   int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                                   int pe) SHMEM_NOEXCEPT;

/* shmem_ibput and shmem_ibget: `nblocks` blocks of `bsize` elements of 1, 2, 4, 8 or 16 bytes. Their beginnings are
 * `dst` elements apart at the destination and `sst` at the source, neither of which is less than bsize. */
typedef struct shmemx_blocks_t {
  ptrdiff_t dst;
  ptrdiff_t sst;
  size_t bsize;
  size_t nblocks;
  size_t size;
} shmemx_blocks_t;
SHMEM_API void shmemx_put_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 int pe) SHMEM_NOEXCEPT;

/* shmem_p and shmem_g of 1, 2, 4 or 8 bytes, from *value and to *value: stored and loaded whole. */
SHMEM_API void shmemx_put_one(const char* call, void* dest, const void* value, size_t size, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_one(const char* call, void* value, const void* source, size_t size, int pe) SHMEM_NOEXCEPT;

/* ---- Copies through scratch memory ----
 *
 * Each thread has SHMEMX_SCRATCH_SIZE bytes of its own, which stand for a core's own memory on other processors. A
 * pointer to scratch below that number is an offset in the caller's scratch; any other is an address in memory. */
#define SHMEMX_SCRATCH_SIZE (256U << 10)
/* The address that such a pointer means. The scratch is the library's, for as long as the thread lives. */
SHMEM_API void* shmemx_scratch(const void* pointer) SHMEM_NOEXCEPT;

/* shmemx_put_blocks and shmemx_get_blocks by way of `scratch`, which has `scratch_size` bytes, at least an element, and
 * is overwritten. */
SHMEM_API void shmemx_put_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 void* scratch, size_t scratch_size, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 void* scratch, size_t scratch_size, int pe) SHMEM_NOEXCEPT;

/* ---- Signals of 32 bits ---- */

/* shmemx_signal32_op: puts before it are visible to a PE that sees the signal. And shmemx_signal32_wait_until, also for
 * a word of another PE of this node by the address that shmem_ptr gives (SHMEMX_MAPPED). */
SHMEM_API void shmemx_signal32(const char* call, int32_t* sig_addr, int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_await_signal32(const char* call, int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT;

/* ---- Atomic operations ---- */

#define SHMEMX_FETCH 0
#define SHMEMX_SWAP 1
#define SHMEMX_COMPARE_SWAP 2
#define SHMEMX_ADD 3
#define SHMEMX_AND 4
#define SHMEMX_OR 5
#define SHMEMX_XOR 6

/* Types besides SHMEMX_FLOAT to SHMEMX_UINT64: floating-point numbers of 16 bits, IEEE 754's and the upper half of a
 * float. */
#define SHMEMX_HALF 9
#define SHMEMX_BFLOAT16 10

/* One operation on the word `dest` of a PE. `operand` and, to compare with, `condition` are of the type; they are read
 * if the operation has them. The previous value goes to *before unless that is NULL. Floating-point types have no and,
 * or, xor and compare_swap. */
typedef struct shmemx_atomic_t {
  const char* call;
  int operation; /* SHMEMX_FETCH ... */
  int type;      /* SHMEMX_FLOAT ... */
  void* dest;
  const void* operand;
  const void* condition;
  void* before;
} shmemx_atomic_t;
SHMEM_API void shmemx_atomic(const shmemx_atomic_t* operation, int pe) SHMEM_NOEXCEPT;

/* ---- How long parts of kernels take ----
 *
 * Measured on the cores of one PE, SHMEM_CYCLE_PROF_PE. Each core counts for itself how often it has been in a frame, a
 * part that the program numbers, and sums up the time in nanoseconds. */
#define SHMEMX_PROF_CORES 64
#define SHMEMX_PROF_FRAMES 1024
typedef struct shmemx_prof_core_t {
  int64_t ccount[SHMEMX_PROF_FRAMES];
  int64_t cycles[SHMEMX_PROF_FRAMES];
} shmemx_prof_core_t;
typedef struct shmemx_prof_t {
  int32_t pe_id;
  shmemx_prof_core_t block_prof[SHMEMX_PROF_CORES];
} shmemx_prof_t;
/* Do nothing on other PEs, on the host, on cores from 64 on, and for a frame that is not 0 to 1023. */
SHMEM_API void shmemx_prof_start(int frame) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_prof_end(int frame) SHMEM_NOEXCEPT;
/* The measurements since the start of the library, which owns them: read them while no kernel runs. NULL on
 * other PEs. */
SHMEM_API shmemx_prof_t* shmemx_prof(void) SHMEM_NOEXCEPT;
/* Prints that to standard output: a line for each core and frame. */
SHMEM_API void shmemx_prof_print(void) SHMEM_NOEXCEPT;

/* ---- Engines ----
 *
 * Elsewhere, engines move data; they use scratch that programs set aside, and queues. Here data moves the same way for
 * all engines. What a program sets is kept, for its own use and for checks: `scratch` is an offset. One of each for the
 * process; to be changed before kernels run. */
#define SHMEMX_ENGINE_MTE 0
#define SHMEMX_ENGINE_SDMA 1
#define SHMEMX_ENGINE_RDMA 2
#define SHMEMX_ENGINE_UDMA 3
typedef struct shmemx_engine_t {
  int64_t scratch;
  uint32_t scratch_size;
  uint32_t sync_id;
  uint32_t queues;
} shmemx_engine_t;
/* REQUIRES: one of these numbers. Owned by the library. */
SHMEM_API shmemx_engine_t* shmemx_engine(int engine) SHMEM_NOEXCEPT;

/* shmem_team_sync; on a core it is for this core alone, on behalf of its PE: the other cores go on, and one core of
 * each member calls it. Several cores of a PE make such barriers one after the other. No other barrier of the team is
 * made meanwhile. */
SHMEM_API int shmemx_sync_alone(const char* call, shmem_team_t team) SHMEM_NOEXCEPT;

/* ---- Lanes: calls of one function that the calling thread runs in turn ---- */

typedef void (*shmemx_lane_t)(void* argument);
/* Calls `body` in each of 1 to 4096 lanes, which have stacks of 256 KiB; returns when all have ended. A lane runs until
 * it waits for others. Errors: -EINVAL their number, no function; -EBUSY called by a lane; -ENOMEM. */
SHMEM_API int shmemx_run_lanes(int lanes, shmemx_lane_t body, void* argument) SHMEM_NOEXCEPT;
/* The calling lane's number, and how many there are; 0 and 1 outside of lanes. */
SHMEM_API int shmemx_lane(void) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_lane_count(void) SHMEM_NOEXCEPT;
/* Waits until the other lanes of the caller's group have called it, too, or have ended. A group is `group` lanes with
 * successive numbers; 0: all lanes. Returns 1 to one of them, 0 to the others. */
SHMEM_API int shmemx_sync_lanes(int group) SHMEM_NOEXCEPT;

/* ---- Notifies: counts that kernels and streams raise and streams wait for ---- */

/* Zeroed by its owner. */
typedef struct shmemx_notify_t {
  uint32_t count;
} shmemx_notify_t;
/* The library's own ones, one for each core: NULL from number SHMEMX_NOTIFIES on. */
#define SHMEMX_NOTIFIES 72
SHMEM_API shmemx_notify_t* shmemx_core_notify(int core) SHMEM_NOEXCEPT;
/* Adds one. Earlier stores, copies of this thread and calls of the stream are visible to the work after a wait. */
SHMEM_API void shmemx_notify_record(shmemx_notify_t* notify) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_notify_record_on_stream(shmemx_notify_t* notify, shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* Waits for a count and takes it, within `milliseconds` unless these are 0. The stream keeps the error. */
SHMEM_API void shmemx_notify_wait_on_stream(shmemx_notify_t* notify, uint32_t milliseconds,
                                            shmemx_stream_t* stream) SHMEM_NOEXCEPT;

/* ---- Calls that cannot be made ---- */

/* Ends the job with a message that names `call`. */
SHMEM_API void shmemx_refuse(const char* call, const char* problem) SHMEM_NOEXCEPT;
/* For calls without an implementation: prints an error that names the call, once per call and PE, and
 * returns -ENOTSUP. */
SHMEM_API int shmemx_not_supported(const char* call) SHMEM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
