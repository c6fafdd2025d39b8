/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSHMEM 1.6 names of libshmem. Section numbers are those of the OpenSHMEM 1.6 specification.
 *
 * Conventions
 *  - Link with -lshmem (or compile with oshcc, oshc++) and start with oshrun.
 *  - A symmetric address names the same object on every PE. It is inside the symmetric heap (section 9.3), or in a
 *    global or static variable of the program (section 3.2); see "Global and static variables" below.
 *  - "Collective over T" means that all PEs of T make the call, in the same order as their other collective calls on T.
 *  - Any thread may make calls, several at once, with every thread level. The program must serialise collective calls
 *    on one team (calls of the heap, start and shmem_finalize are on SHMEM_TEAM_WORLD), and destroy a team or context
 *    when no thread uses it. A waiting thread does not block other threads.
 *  - A call without a result that fails ends the job with a message on standard error that names the call, the value
 *    and the PE. Errors of calls with a result are described at each.
 *  - Every routine shmem_X is a weak alias of pshmem_X (section 10: profiling).
 *  - Generic names (shmem_put and the like) are macros in C11 (shmem_generic.h) and overloads in C++ (shmem_cxx.h).
 *  - There are OpenSHMEM's signatures only. With shmemx.h, in C++, Ascend SHMEM's forms of the same names are overloads
 *    (shmem_overloads.h). SHMEM_NO_OVERLOADS removes both kinds of overloads.
 *  - The names of this header begin with shmem_, pshmem_, SHMEM_ or _SHMEM_, but for the deprecated names from before
 *    OpenSHMEM 1.2. stddef.h and stdint.h, in C++ also <complex>, come with it.
 */
/*
 * Global and static variables
 *  - Writable variables are symmetric: initialised or not, of file or function scope, of the executable and of the
 *    program's own shared libraries: those in DT_NEEDED that are neither in /lib or /usr/lib nor a known runtime (of a
 *    language, a sanitizer, message passing). Constants, thread-local variables and libraries loaded by dlopen() are
 *    not symmetric.
 *  - They are symmetric between shmem_init and shmem_finalize and keep their values across both. Before and after, each
 *    PE has its own. Even the first read of a page allocates memory.
 *  - PEs that run another program, or the same with other libraries, share the heap with this PE but none of its
 *    globals: shmem_addr_accessible returns 0.
 *  - With SHMEM_SYMMETRIC_GLOBALS=off they are not symmetric; nor are they on any PE if one PE cannot replace them by
 *    shared memory. SHMEM_INFO=1 prints the reason, and so does a call with such an address.
 *  - Other threads must not store to them during shmem_init and shmem_finalize: such a store may be lost.
 *  - A child made by fork() is not a PE and has its own copy of the pages in use, made before the child (handlers of
 *    pthread_atfork that were registered before this library was loaded run before the copy is in place). _Fork() and
 *    clone() make no such copy; system() and posix_spawn() need none.
 *  - Core dumps contain them, except zero-initialised data of 16 MiB or more in one object, but not the symmetric heap.
 */
#ifndef SHMEM_SHMEM_H
#define SHMEM_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "shmem_atomic.h"
#include "shmem_collective.h"
#include "shmem_compat.h"
#include "shmem_context.h"
#include "shmem_rma.h"
#include "shmem_wait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants (section 6). The numbers are those of Ascend SHMEM. ---- */
#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "libshmem"
/* Not in OpenSHMEM: for programs that ask the preprocessor whose header this is. */
#define SHMEM_LIBSHMEM 1

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* Deprecated since 1.3. NOLINTBEGIN(bugprone-reserved-identifier) */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- Teams (section 9.4) ---- */
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2) /* the PEs whose memory this PE can load and store */

#define SHMEM_TEAM_NUM_CONTEXTS 1L
typedef struct {
  int num_contexts; /* contexts that the program plans to create from the team */
} shmem_team_config_t;

/* ---- Set-up, exit, query (section 9.1) ---- */

/* Collective over the job. Starts the library. Called first; while the library runs, further calls only
 * count, and the same number of shmem_finalize calls ends it. After that it may be started again, also with another
 * environment. If the job cannot be set up, shmem_init ends all PEs with a message. */
SHMEM_DECLARE(void, init, (void))
/* As shmem_init, which requests SHMEM_THREAD_SINGLE. *provided is `requested`, or more if an earlier call requested
 * more: all levels are available, and shmem_query_thread returns the current one. Returns 0; or, if `requested` is not
 * a level or `provided` is NULL, prints a message, starts nothing and returns non-zero. The other queries below only
 * print a message if an argument for a result is NULL. If the job cannot be set up, it returns non-zero, too, and other
 * calls are not possible then. */
SHMEM_DECLARE(int, init_thread, (int requested, int* provided))
SHMEM_DECLARE(void, query_thread, (int* provided))
/* *initialized is 1 between shmem_init and shmem_finalize, else 0. */
SHMEM_DECLARE(void, query_initialized, (int* initialized))
/* Collective over the job. Completes all transfers and releases all resources. The symmetric heap is gone afterwards,
 * global variables keep their values. If there were several calls of shmem_init, only the last call does that; the
 * others are as shmem_barrier_all. A PE that exits with status 0 calls it implicitly (deprecated since 1.2). */
SHMEM_DECLARE(void, finalize, (void))
/* Ends all PEs of the job, on all nodes, with this exit status. Does not return: the calling PE exits as by exit(),
 * which runs its exit handlers, and the others are told to end. */
SHMEM_DECLARE(__attribute__((noreturn)) void, global_exit, (int status))
/* This PE's number, 0 to shmem_n_pes() - 1; the number of PEs. -1 before shmem_init. */
SHMEM_DECLARE(int, my_pe, (void))
SHMEM_DECLARE(int, n_pes, (void))
/* 1 if the PE exists, and if the address is symmetric and the PE has it too; else 0. */
SHMEM_DECLARE(int, pe_accessible, (int pe))
SHMEM_DECLARE(int, addr_accessible, (const void* addr, int pe))
/* The address at which this PE can load and store the object `dest` of `pe` (of PE `pe` of `team`); NULL if `dest` is
 * not symmetric or there is no such PE. For this PE itself it is `dest`. Not to be freed. */
SHMEM_DECLARE(void*, ptr, (const void* dest, int pe))
SHMEM_DECLARE(void*, team_ptr, (shmem_team_t team, const void* dest, int pe))
SHMEM_DECLARE(void, info_get_version, (int* major, int* minor))
/* `name` has room for SHMEM_MAX_NAME_LEN characters. */
SHMEM_DECLARE(void, info_get_name, (char* name))

/* Does nothing; a profiling library may give it a meaning (section 10). */
SHMEM_DECLARE(void, pcontrol, (int level, ...))

/* Deprecated since 1.2: shmem_init, shmem_my_pe and shmem_n_pes. */
SHMEM_DECLARE_NAME(void, start_pes, (int npes))
SHMEM_DECLARE_NAME(int, _my_pe, (void))
SHMEM_DECLARE_NAME(int, _num_pes, (void))

/* ---- Symmetric heap (section 9.3). Sizes in bytes. ----
 *
 * Collective over the job, with equal arguments on all PEs. A call that has something to do is a barrier of the world
 * and completes the caller's puts. The others return NULL, or nothing, at once: size or count 0 (in shmem_realloc
 * without a block), and shmem_free(NULL). The PEs' arguments are compared in the barrier. If they differ, or are wrong
 * on one PE, nothing is done and every PE prints the calls by PE; then, and if the arguments are equal and wrong, or
 * memory is short, allocation returns NULL on all PEs and shmem_free ends the job.
 * If a PE is in another collective call of the world instead, the job ends, with a message that names it. Blocks begin
 * at multiples of 64 and share no cache line. Their contents are undefined unless stated otherwise. */

/* NULL for size 0, and if memory is short (set SHMEM_SYMMETRIC_SIZE). Ends with the barrier. Freed by shmem_free. */
SHMEM_DECLARE(void*, malloc, (size_t size))
/* As shmem_malloc. `hints`: 0 or an or of the two below, for blocks that other PEs use for atomics or as
 * signals. Other bits have no effect; all are compared. */
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L
SHMEM_DECLARE(void*, malloc_with_hints, (size_t size, long hints))
/* count * size bytes, zero. NULL, with a message, on overflow. */
SHMEM_DECLARE(void*, calloc, (size_t count, size_t size))
/* The block begins at a multiple of `alignment`, a power of two not larger than the heap; else NULL, with a message.
 * 0: NULL, with a message. Any other number is rounded up to a power of two, with a warning. */
SHMEM_DECLARE(void*, align, (size_t alignment, size_t size))
/* Changes the block to `size` bytes, in place if possible; else copies the contents that fit to another block, aligned
 * as shmem_malloc's, and makes a second barrier. As shmem_malloc if `ptr` is NULL; as shmem_free, returning NULL, if
 * `size` is 0. NULL also if memory is short; the block is then unchanged. */
SHMEM_DECLARE(void*, realloc, (void* ptr, size_t size))
/* Begins with the barrier. NULL frees nothing; nor does an address inside a block, with a warning. */
SHMEM_DECLARE(void, free, (void* ptr))

/* Deprecated since 1.2: shmem_malloc, shmem_align, shmem_realloc and shmem_free. */
SHMEM_DECLARE_NAME(void*, shmalloc, (size_t size))
SHMEM_DECLARE_NAME(void*, shmemalign, (size_t alignment, size_t size))
SHMEM_DECLARE_NAME(void*, shrealloc, (void* ptr, size_t size))
SHMEM_DECLARE_NAME(void, shfree, (void* ptr))

/* ---- Teams (section 9.4) ---- */

/* This PE's number in the team, the number of its PEs; -1 for SHMEM_TEAM_INVALID or a PE outside. */
SHMEM_DECLARE(int, team_my_pe, (shmem_team_t team))
SHMEM_DECLARE(int, team_n_pes, (shmem_team_t team))
/* The number in `dest_team` of PE `src_pe` of `src_team`, or -1. */
SHMEM_DECLARE(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
/* *config of the team; `config_mask` says which members are wanted. 0, or -1 for an invalid team. */
SHMEM_DECLARE(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t* config))
/* Collective over `parent_team`. PEs start, start + stride, ... (`size` of them; numbers of the parent) become
 * *new_team in this order; the stride may be below 0, and may be 0 if size is 1. The other PEs get SHMEM_TEAM_INVALID.
 * 0; or, on all PEs of the parent, non-zero with a message and SHMEM_TEAM_INVALID, if there is no such set of PEs or no
 * more room for teams, or if one PE gives other arguments, a wrong configuration or NULL for `new_team`. `config` may
 * be NULL if `config_mask` is 0. Ended by shmem_team_destroy. */
SHMEM_DECLARE(int, team_split_strided,
              (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t* config,
               long config_mask, shmem_team_t* new_team))
/* Collective over `parent_team`. Its PEs are laid out in rows of `xrange`; each gets the team of its row and of its
 * column. */
SHMEM_DECLARE(int, team_split_2d,
              (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config, long xaxis_mask,
               shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask,
               shmem_team_t* yaxis_team))
/* Collective over the team. SHMEM_TEAM_INVALID does nothing; the predefined teams cannot be destroyed. */
SHMEM_DECLARE(void, team_destroy, (shmem_team_t team))

/* ---- Barriers (section 9.10) ----
 *
 * On a core of a kernel (shmemx_launch) those of the world and of teams synchronise all cores of all members. */

/* Collective over the world: shmem_quiet, then waits until all PEs have arrived. */
SHMEM_DECLARE(void, barrier_all, (void))
/* Collective over the world: waits until all PEs have arrived. Completes no transfers. */
SHMEM_DECLARE(void, sync_all, (void))
/* Collective over the team. 0, or non-zero with a message: the team is invalid, a PE died, or SHMEM_BARRIER_TIMEOUT
 * passed. */
SHMEM_DECLARE(int, team_sync, (shmem_team_t team))
/* Deprecated since 1.5. Among PEs PE_start, PE_start + 2^logPE_stride, ... (PE_size of them). pSync: symmetric, of
 * SHMEM_BARRIER_SYNC_SIZE words, SHMEM_SYNC_VALUE before the first use and again after each. */
SHMEM_DECLARE(void, barrier, (int PE_start, int logPE_stride, int PE_size, long* pSync))
SHMEM_DECLARE(void, sync, (int PE_start, int logPE_stride, int PE_size, long* pSync))

#ifdef __cplusplus
} /* extern "C" */
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "shmem_generic.h"
/* Section 9.10: in C11 shmem_sync takes a team or an active set. */
#define SHMEM_SYNC_PICK(a, b, c, d, name, ...) name
#define shmem_sync(...) \
  SHMEM_SYNC_PICK(__VA_ARGS__, (shmem_sync), shmem_sync_3, shmem_sync_2, shmem_team_sync, )(__VA_ARGS__)
#endif

#if defined(__cplusplus) && !defined(SHMEM_NO_OVERLOADS)
#include "shmem_cxx.h"
#endif

#endif
