/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libshmem's extensions of OpenSHMEM. The conventions are those of shmem.h; calls with an int result return 0 or a
 * negative errno, and shmemx_error_text() then describes the error.
 */
#ifndef SHMEM_SHMEMX_H
#define SHMEM_SHMEMX_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text of the calling thread's last failed call, or "". Valid until its next failed call. */
SHMEM_API const char* shmemx_error_text(void) SHMEM_NOEXCEPT;

/*
 * With `on` not 0, the library never ends this process because of a failure: for programs that it is only a part of.
 * Calls that would end the job, because they have no way to report (shmem_barrier_all, shmem_putmem, shmem_init), then
 * return, and the library prints no error: shmemx_take_error and shmemx_error_text tell the calling thread. Such a call
 * returns a negative errno if its result is an int, else NULL or 0. Nothing else is ended: tell the other PEs, or leave
 * them to their timeouts.
 *
 * After a failed barrier or collective call, later ones on that team fail at once with the same error. shmem_finalize
 * ends the library then, too: the process can start again, as a PE of a new job (shmemx_init_attr by a new unique id).
 * For the whole process, at any time, best before shmem_init. shmem_global_exit still ends the calling process.
 */
SHMEM_API void shmemx_set_errors_return(int on) SHMEM_NOEXCEPT;
/* The negative errno of the first failure of this thread that no result told of, since its last call of
 * shmemx_take_error; 0: there was none. */
SHMEM_API int shmemx_take_error(void) SHMEM_NOEXCEPT;

/*
 * With `on` not 0, this process goes on when another PE of its job dies: shmemx_set_errors_return(1), and the death of
 * a PE does not end the job. Calls that need the dead PE fail in a second or two; others work. shmemx_team_shrink makes
 * a team of the members that are left. To be called before shmem_init, on all PEs: if one has not called it, the death
 * of a PE ends the job. Jobs by unique id, and of oshrun on one machine; elsewhere the death of a PE ends the job as
 * well.
 * A wait for a store (shmem_wait_until, shmem_signal_wait_until) fails once a member of what is left of
 * SHMEM_TEAM_WORLD has died, and one for a lock if that member held or had requested it: shmemx_take_error returns
 * -EOWNERDEAD. oshrun's status is that of the PEs that leave the job by shmem_finalize. Errors: -EALREADY the library
 * runs.
 */
SHMEM_API int shmemx_set_survive(int on) SHMEM_NOEXCEPT;

/* ---- Starting with attributes: by a unique id over TCP, by MPI, or as the environment says. The calls and their
 * fields are those of Ascend SHMEM; so is their behaviour unless stated otherwise. ---- */

#define SHMEMX_STATUS_NOT_INITIALIZED 0
#define SHMEMX_STATUS_IS_INITIALIZED 2
/* Which of the two the library is in. Ascend's 1 (memory made, not yet mapped) is never seen. */
SHMEM_API int shmemx_init_status(void) SHMEM_NOEXCEPT;

/* Where one PE of a job listens for the others, and the 128 random bits that a PE needs to join: send them only to
 * the PEs of the job, over a channel that the application trusts. They are never printed. Plain bytes: copy them.
 */
typedef struct shmemx_uniqueid_t {
  int32_t version;
  char internal[124];
} shmemx_uniqueid_t;
#define SHMEMX_UNIQUEID_VERSION 1
#define SHMEMX_UNIQUEID_INITIALIZER \
  {                                 \
    SHMEMX_UNIQUEID_VERSION, {      \
      0                             \
    }                               \
  }

/*
 * Called by one process that will be a PE of the job, mostly PE 0; the application sends its bytes to all others
 * (by MPI, a file, a message). Not collective; the library need not run. From now on this process listens, at the
 * address of SHMEM_UID_SESSION_ID (ip:port, [ipv6]:port, host:port), else of the interface SHMEM_UID_SOCK_IFNAME
 * (name, name:inet4, name:inet6), else of the first interface that other nodes can reach, else at loopback, and
 * on a free port unless one is given. An id starts one job; a further call invalidates an earlier unused id.
 * Errors: -EINVAL `uid` is NULL, or the environment is malformed;
 * -EADDRNOTAVAIL no such address; -EADDRINUSE; errors of getrandom or socket.
 */
SHMEM_API int shmemx_get_uniqueid(shmemx_uniqueid_t* uid) SHMEM_NOEXCEPT;

/* How to start. Set it to SHMEMX_INIT_ATTR_INITIALIZER, then change members. */
typedef struct shmemx_init_attr_t {
  int32_t version;
  int32_t my_pe;             /* this PE's number, 0 to n_pes - 1 */
  int32_t n_pes;             /* 0: as the launcher says; else a launcher that says something else is an error */
  char ip_port[64];          /* "": none; else where PE 0 listens, as SHMEM_UID_SESSION_ID, with or without tcp:// */
  uint64_t local_mem_size;   /* bytes of symmetric heap, the same on all PEs; 0: SHMEM_SYMMETRIC_SIZE */
  uint32_t shm_init_timeout; /* seconds to wait for the others at start; 0: SHMEM_BOOTSTRAP_TIMEOUT */
  uint32_t control_operation_timeout; /* seconds in a barrier; 0: SHMEM_BARRIER_TIMEOUT */
  void* comm_args; /* by unique id: the shmemx_uniqueid_t; by MPI: the address of an MPI_Comm, or NULL for the world */
} shmemx_init_attr_t;
#define SHMEMX_INIT_ATTR_VERSION 1
#define SHMEMX_INIT_ATTR_INITIALIZER \
  { SHMEMX_INIT_ATTR_VERSION, 0, 0, {0}, 0, 0, 0, NULL }

/* Fills `attr` for SHMEMX_INIT_WITH_UNIQUEID. `uid` must live until shmemx_init_attr returns; nothing is done yet.
 * Errors: -EINVAL a NULL pointer, my_pe or n_pes out of range (n_pes is at most SHMEMX_MAX_PES), a negative size. */
#define SHMEMX_MAX_PES 16384
SHMEM_API int shmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size, shmemx_uniqueid_t* uid,
                                            shmemx_init_attr_t* attr) SHMEM_NOEXCEPT;

/* Exactly one of these. */
#define SHMEMX_INIT_WITH_DEFAULT \
  (1U << 0) /* ip_port if it is not "", else comm_args if not NULL, else as shmem_init \
             */
#define SHMEMX_INIT_WITH_MPI (1U << 1)
#define SHMEMX_INIT_WITH_UNIQUEID (1U << 3)

/*
 * Collective over the job. Starts the library as shmem_init does, but returns errors instead of ending the process; the
 * PEs connect as `flags` say, whatever SHMEM_BOOTSTRAP says. `attr` may be NULL with SHMEMX_INIT_WITH_DEFAULT.
 * It succeeds on all PEs or on none. PEs may be on several nodes, if all of them can reach PE 0's address. Ended by
 * shmem_finalize; then it may be called again, by unique id with a new one. Without a launcher, a PE that dies ends the
 * waits of the others with an error, and shmem_global_exit ends all of them with its status.
 *
 * Errors: -EALREADY the library runs; -EINVAL flags, attributes or environment, as shmemx_error_text says, or those of
 * another PE (another n_pes, the same my_pe twice); -EACCES not the secret of this job, or another program listens
 * at its address; -ECONNREFUSED no listener; -ETIMEDOUT PEs did not connect, named in the text; -EOWNERDEAD,
 * -ECONNRESET a PE died or gave up; -ECANCELED, -ECONNABORTED the job was ended; -ENOTSUP UCX, PMIx or MPI is
 * not available, or the launcher gives PEs no way to find each other; -EPROTONOSUPPORT PEs with different versions of
 * libshmem; -ENOMEM the heap; -EMFILE.
 */
SHMEM_API int shmemx_init_attr(unsigned int flags, const shmemx_init_attr_t* attr) SHMEM_NOEXCEPT;

/* ---- The symmetric heap, seen from this PE ---- */
typedef struct shmemx_heap_stats_t {
  size_t size; /* bytes; this and the next three are the same on all PEs */
  size_t used; /* bytes in live blocks, rounded up to multiples of 64 */
  size_t live_blocks;
  size_t largest_free; /* bytes of the largest block that is available now */
  char pages[16];      /* "hugetlb", "thp" (where the kernel finds some), or the size of small ones: "4 KiB" */
  char numa[64];       /* where this PE's heap lies: "local (node 1)", "interleave (nodes 0, 1)", or "none" */
  char reason[512];    /* why these two are not better, or "" */
} shmemx_heap_stats_t;
/* Not collective. Errors: -EINVAL `stats` is NULL. */
SHMEM_API int shmemx_heap_stats(shmemx_heap_stats_t* stats) SHMEM_NOEXCEPT;

/* ---- Memory that the program has ----
 *
 * Collective over the world (after shmemx_team_shrink of it, over what is left): makes `bytes` at `address` symmetric,
 * until they are unregistered. From then on the caller's own address stands for the same offset in the memory of any PE
 * in all calls, as an address of the symmetric heap does: in puts and gets of all kinds, atomic operations, signals,
 * waits, locks, collective calls, shmem_ptr, and as caches of kv_shuffle. `bytes` is the same on all PEs; addresses and
 * files need not be, but addresses are aligned alike, up to 16 bytes. Returns when all PEs have it.
 *
 * fd is the descriptor of the file that the memory is a mapping of, by MAP_SHARED, and `offset` is the place of
 * `address` in it: a memfd, or a file of tmpfs (/dev/shm) or hugetlbfs, open for reading and writing. The other PEs of
 * the node map it, and use it as fast as the symmetric heap. The library keeps no descriptor: the caller may close fd
 * afterwards. With fd -1 the library looks for the file itself, among the open files of the process and by its path.
 * If it finds none, the memory is private to the process (malloc, MAP_PRIVATE), and the kernel copies it:
 * process_vm_readv and process_vm_writev, about a microsecond for each put and get, also of one word. Then atomic
 * operations, signals, locks and collective calls between PEs of one node are refused for it, shmem_ptr gives NULL, and
 * shuffles of a cache in it are slower. PEs on other nodes reach all registered memory alike.
 *
 * The memory stays mapped, and its file is not made shorter, until it is unregistered: PEs that access what is not
 * there any more get SIGBUS, or end the job. (A seal F_SEAL_SHRINK makes sure of that.) Up to 240 memories at a time.
 *
 * Errors, the same on all PEs, which name the PE: -EINVAL no bytes, different sizes or alignments, the memory is not
 * what fd has at `offset`, or is symmetric already; -EEXIST it overlaps registered memory; -EFAULT not all of it is
 * mapped; -EACCES it cannot be written, fd is not open for both or sealed against writing, or the kernel does not copy
 * private memory between these processes (the text says why); -EOPNOTSUPP memory of a device, or a file of another
 * kind; -EBADF; -ENOBUFS too many; those of a barrier: -EOWNERDEAD, -ETIMEDOUT, -ECANCELED.
 */
SHMEM_API int shmemx_memory_register(void* address, size_t bytes, int fd, uint64_t offset) SHMEM_NOEXCEPT;
/* Collective likewise: shmem_quiet, then no PE reaches the memory that was registered at `address` any more. The memory
 * itself is the caller's. shmem_finalize does the same to what is left. Errors, the same on all PEs: -EINVAL a PE has
 * registered none that begins there, or means another one than the others; those of a barrier. */
SHMEM_API int shmemx_memory_unregister(void* address) SHMEM_NOEXCEPT;

/* ---- Messages ---- */

#define SHMEMX_LOG_DEBUG 0
#define SHMEMX_LOG_INFO 1
#define SHMEMX_LOG_WARN 2
#define SHMEMX_LOG_ERROR 3
#define SHMEMX_LOG_FATAL 4
/* Gets each message, without an end of line, in place of standard error; `text` is valid during the call only.
 * Called by any thread of the library, also at the end of the process. */
typedef void (*shmemx_logger_t)(int level, const char* text);
/* Before or after shmem_init, for the whole process. NULL: standard error again. */
SHMEM_API void shmemx_set_logger(shmemx_logger_t logger) SHMEM_NOEXCEPT;
/* Drops messages below `level`. At first none are; those of SHMEM_INFO and SHMEM_DEBUG come only when these are set.
 * Errors: -EINVAL no such level. */
SHMEM_API int shmemx_set_log_level(int level) SHMEM_NOEXCEPT;

/* ---- Teams and their barriers ---- */

/* Collective over the team: shmem_quiet, then waits until all members have arrived. */
SHMEM_API void shmemx_team_barrier(shmem_team_t team) SHMEM_NOEXCEPT;
/*
 * The same in two phases, with other work in between: this PE's stores before shmemx_barrier_arrive (which calls
 * shmem_quiet) are visible to every member whose shmemx_barrier_test or _wait has returned 0. All members make a
 * barrier this way, or all in one call; a team has one open barrier at a time, and until that is over other collective
 * calls on the team are refused (-EBUSY, or the end of the job where they cannot report). All four calls are for host
 * threads, and for one of them at a time. Errors: -EINVAL no such team, and see below; -EOWNERDEAD a missing member has
 * died; -ECANCELED the job was ended; -EPROTO a member makes this barrier in one call: after these three the team is
 * unusable.
 *
 * shmemx_barrier_arrive does not wait. -EBUSY: a barrier is open.
 * shmemx_barrier_test returns 0 when all have arrived, which ends the barrier; -EAGAIN not yet; -EINVAL none is open.
 * shmemx_barrier_wait waits for that. -ETIMEDOUT: not within SHMEM_BARRIER_TIMEOUT; -EINVAL none is open.
 * shmemx_barrier_timed arrives, unless a barrier is open, and waits up to timeout_ns. -ETIMEDOUT: shmemx_error_text
 * names the missing PEs.
 *
 * After -ETIMEDOUT the barrier is still open: this PE has arrived, and the others continue once the missing ones
 * arrive. Continue with test, wait or timed.
 */
SHMEM_API int shmemx_barrier_arrive(shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_barrier_test(shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_barrier_wait(shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_barrier_timed(shmem_team_t team, uint64_t timeout_ns) SHMEM_NOEXCEPT;
/*
 * Makes a team of the members of `team` that are left, in their order: after a member has died, or to go on without one
 * that hangs. Collective over the members that live. Each calls it after a call on the team, or an operation on memory
 * of a member, has failed; as soon as one has called it, the calls of the others on the team fail, too. It returns when
 * all of them have called it. A member that does not call it within SHMEM_BARRIER_TIMEOUT (if that is 0,
 * SHMEM_BOOTSTRAP_TIMEOUT) is left out, and a warning names it: it is never in the new team, gets -ENOTRECOVERABLE
 * from this call, and an error from calls on the old team. An operation that waits for a PE that hangs takes
 * as long until it fails (SHMEM_NETWORK_TIMEOUT): a member that starts another one, before it calls this, is late.
 *
 * All callers get the same team, whatever each of them knew, also if members die meanwhile. A member that dies after
 * they have agreed is in the new team, whose calls then fail, and which can be shrunk again. The new team can be used
 * like any other: its barriers get a group of the GBA, and it can be split. If its members are not evenly spaced,
 * shmemx_team_info gives stride 0, and kernels cannot ask for its PEs (-1). The old team only answers questions about
 * its members, and can be destroyed, which does not wait for the others.
 *
 * What is left of SHMEM_TEAM_WORLD stands for it in calls that are collective over the job: shmem_malloc, shmem_free,
 * creating and destroying operators of kv_shuffle, and shmem_finalize, which ends that team. The PEs keep their
 * numbers, and SHMEM_TEAM_WORLD keeps its members, so shmem_barrier_all still fails.
 *
 * Errors, with SHMEM_TEAM_INVALID in `new_team`: -EINVAL no such team, or new_team is NULL; -EPERM not all PEs have
 * called shmemx_set_survive, or this process has to call shmemx_team_grow; -ENOTSUP the launcher ends a job that has
 * lost a PE; -ENOTRECOVERABLE this PE was left out; -ECANCELED the job was ended; -ENOBUFS, on all members: they are in
 * too many teams.
 */
SHMEM_API int shmemx_team_shrink(shmem_team_t team, shmem_team_t* new_team) SHMEM_NOEXCEPT;
/*
 * Makes a team of the members of `team` that are left, and of processes that take the places of dead PEs, which `oshrun
 * --restart N` starts. `team` is what is left of SHMEM_TEAM_WORLD, and the new team is that afterwards. Collective over
 * the members that live, as shmemx_team_shrink is, and over the new processes, which call shmem_init as usual and pass
 * SHMEM_TEAM_WORLD here. The members wait until `processes` of them have come, up to SHMEM_BOOTSTRAP_TIMEOUT; a new
 * process waits as long for the members. The new team has all that came, perhaps none, and is the same for all callers.
 * A PE that hangs keeps its place until shmemx_team_shrink of what is left of SHMEM_TEAM_WORLD has left it out: then
 * oshrun kills it and starts it again. Memory that was registered before is not symmetric with a new process: all
 * members call shmemx_memory_unregister, which returns -EINVAL, and register it again.
 * A new process has the number of the PE whose place it has. Its symmetric heap has the blocks that the others have,
 * and is zero. Teams made before have the dead PE as a member, not the new process. On one node. Errors, with
 * SHMEM_TEAM_INVALID in `new_team`: those of shmemx_team_shrink; -EINVAL also another team; -ENOTSUP also with
 * SHMEM_DEBUG; -ETIMEDOUT in a new process: the members have not called it.
 */
SHMEM_API int shmemx_team_grow(shmem_team_t team, int processes, shmem_team_t* new_team) SHMEM_NOEXCEPT;
/* 1: this process has taken the place of a PE that has died. Its SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED have failed;
 * shmemx_team_grow gives it a team. 0: it started with the job. */
SHMEM_API int shmemx_is_replacement(void) SHMEM_NOEXCEPT;
/* Not collective: the members that were left out when the team was shrunk, by their numbers in the world; the same on
 * all members. Before that, those whose process has ended, as this PE finds now. Returns their number, and stores up to
 * `n` of them; `pes` may be NULL with n 0. Errors: -EINVAL. */
SHMEM_API int shmemx_team_failed(shmem_team_t team, int* pes, int n) SHMEM_NOEXCEPT;
/* As shmem_team_split_strided and the like without configurations, and with strides above 0. */
SHMEM_API int shmemx_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                                        shmem_team_t* new_team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_team_split_2d(shmem_team_t parent_team, int xrange, shmem_team_t* xaxis_team,
                                   shmem_team_t* yaxis_team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_team_get_config(shmem_team_t team, shmem_team_config_t* config) SHMEM_NOEXCEPT;

/*
 * Collective over the team: synchronise by `algorithm` from now on: "gba", "auto" (gba if available), or a
 * software algorithm that shmem_info lists.
 * Errors: -EINVAL no such team; -EINVAL on all members, and nothing is changed, if one of them gives a wrong name,
 * NULL, or another name than the others; -ENODEV "gba" is not available, the same on all members.
 */
SHMEM_API int shmemx_team_set_barrier(shmem_team_t team, const char* algorithm) SHMEM_NOEXCEPT;

/* A team as this PE sees it: its members, how it synchronises, and how often it has. */
typedef struct shmemx_team_info_t {
  int n_pes;            /* members */
  int my_pe;            /* this PE's number in it */
  int start;            /* the members are PEs start, start + stride, ... of the world */
  int stride;           /* 0: they are not evenly spaced */
  char algorithm[32];   /* of its barriers, now; on several nodes, how its nodes synchronise */
  char reason[256];     /* why that is not the GBA, or not what was chosen, or "" */
  uint64_t by_device;   /* barriers that the GBA released */
  uint64_t by_software; /* barriers done in software, those finished after a loss of the device included */
} shmemx_team_info_t;
/* Errors: -EINVAL no such team, or info is NULL. */
SHMEM_API int shmemx_team_info(shmem_team_t team, shmemx_team_info_t* info) SHMEM_NOEXCEPT;

/*
 * This PE's statistics of a team's barriers since the team was created. Times are in nanoseconds. To keep their cost
 * low only every 64th barrier is timed (all with SHMEM_INFO or SHMEM_TRACE): they are sums and maxima over the `timed`
 * barriers. Barriers of the same number are timed on all members whose environment is the same. If not all are timed,
 * skew and last PE of more than 16 members are those of 16 neighbours, of others each time. On several nodes,
 * skew and last PE are those of the members on this PE's node, because nodes have no common clock.
 */
typedef struct shmemx_barrier_stats_t {
  uint64_t barriers;  /* that this PE has completed; of collective calls that are barriers too, such as shmem_malloc */
  uint64_t by_device; /* of these, released by the GBA */
  uint64_t by_software; /* the others */
  uint64_t timed;
  uint64_t wait_ns; /* from this PE's arrival until its release */
  uint64_t max_wait_ns;
  uint64_t skew_ns; /* from the first member's arrival to the last one's */
  uint64_t max_skew_ns;
  uint64_t my_last_count;   /* how often this PE arrived last */
  uint64_t most_last_count; /* how often the PE that was most often last did */
  int32_t most_last_pe;     /* that PE's number in the team; -1: nothing was timed */
  int32_t reserved;         /* 0 */
} shmemx_barrier_stats_t;
/* Not collective. Call it between two barriers, from the thread that makes them. Errors: -EINVAL no such
 * team, or stats is NULL. */
SHMEM_API int shmemx_barrier_stats(shmem_team_t team, shmemx_barrier_stats_t* stats) SHMEM_NOEXCEPT;

/* ---- Kernels on the vector cores of this PE, which are threads of it ---- */

typedef struct shmemx_core_t shmemx_core_t; /* one core, during a kernel; owned by the library */
typedef void (*shmemx_kernel_t)(shmemx_core_t* core, void* argument);

/*
 * Runs `kernel` on `cores` cores at once, the calling thread being core 0, and returns when all have ended. The threads
 * are kept for the next launch with as many cores. One launch at a time.
 *
 * In a kernel, RMA, signals, queries and barriers may be called; the barriers and syncs of the world and of teams,
 * under all their names, are collective there over all cores of all members, which are launched with the same calls on
 * all of them. Other collective calls are for the host: on a core they end the job.
 *
 * A wait that fails gives its error to the core, where it cannot return it: all later barriers and waits of that core
 * fail with it at once, and so do the other cores' waits when its kernel has returned. Errors: what that was
 * (-ETIMEDOUT SHMEM_BARRIER_TIMEOUT, -EOWNERDEAD a PE has died, -ECANCELED the job was ended), with a message; -EINVAL
 * cores < 1 or no kernel; -EAGAIN threads cannot be made; -EBUSY called by a kernel, or
 * while another thread of this PE runs one.
 */
SHMEM_API int shmemx_launch(int cores, shmemx_kernel_t kernel, void* argument) SHMEM_NOEXCEPT;
/* The calls below take the core that the kernel was given. With another, or outside of a kernel, they end the job. */
SHMEM_API int shmemx_core_index(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_count(const shmemx_core_t* core) SHMEM_NOEXCEPT;
/* As the host calls of these names, for cores: they read only a copy that the host has made for them. -1
 * for a team that this PE is not in; NULL for an address outside the symmetric heap, or no such PE. */
SHMEM_API int shmemx_core_my_pe(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_n_pes(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_my_pe(const shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_n_pes(const shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_translate_pe(const shmemx_core_t* core, shmem_team_t src_team, int src_pe,
                                            shmem_team_t dest_team) SHMEM_NOEXCEPT;
SHMEM_API void* shmemx_core_ptr(const shmemx_core_t* core, const void* dest, int pe) SHMEM_NOEXCEPT;
/* A barrier of the cores of this PE. Errors: as shmemx_launch; the kernel should return then. */
SHMEM_API int shmemx_core_sync(shmemx_core_t* core) SHMEM_NOEXCEPT;
/* Called by all cores of all PEs of the team: shmem_quiet, then waits for all of them. Errors: as shmemx_core_sync. */
SHMEM_API int shmemx_core_barrier(shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;

/* ---- Streams: a thread does work in order while the caller continues ---- */

typedef struct shmemx_stream_t shmemx_stream_t;

/* The stream is the caller's to destroy, which waits for its work. shmem_finalize waits for the work of all streams.
 * A stream that does not exist ends the job, as other arguments that are not valid do; shmemx_stream_synchronize
 * returns -EINVAL, and shmemx_stream_destroy prints a message. Errors: -EINVAL `stream` is NULL; -EAGAIN no more
 * threads. */
SHMEM_API int shmemx_stream_create(shmemx_stream_t** stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_stream_destroy(shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* Waits until all work given so far is done. In all these calls NULL is the library's own stream. Errors: the
 * first error of the work since the last call. */
SHMEM_API int shmemx_stream_synchronize(shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* As shmemx_team_barrier, shmem_quiet, shmem_putmem and shmem_getmem, in the order of the stream; `source` and `dest`
 * belong to it until that is done. Arguments are checked at once, and wrong ones end the job. A team's collective calls
 * do not overlap: nothing else synchronises the team before the stream has (freeing and allocating synchronises the
 * world). */
SHMEM_API void shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t* stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_quiet_on_stream(shmemx_stream_t* stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                       shmemx_stream_t* stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                       shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* Copies and fills memory of this PE, in the order of the stream. The areas do not overlap. */
SHMEM_API void shmemx_memcpy_on_stream(void* dest, const void* source, size_t bytes,
                                       shmemx_stream_t* stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_memset_on_stream(void* dest, int value, size_t bytes, shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* shmemx_launch in the order of the stream, whose thread is core 0; `argument` belongs to it until then.
 * shmemx_stream_synchronize returns its errors: -EBUSY another stream or thread runs a kernel. */
SHMEM_API void shmemx_launch_on_stream(int cores, shmemx_kernel_t kernel, void* argument,
                                       shmemx_stream_t* stream) SHMEM_NOEXCEPT;
/* As shmemx_signal32_op and shmemx_signal32_wait_until (below, and in shmem_device.h), in the order of the stream.
 * shmemx_stream_synchronize reports a failed wait. The wait also takes a word of another PE of this node, by the
 * address that shmem_ptr gives, which it looks at once in a millisecond. */
SHMEM_API void shmemx_signal32_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op, int pe,
                                            shmemx_stream_t* stream) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_signal32_wait_until_on_stream(int32_t* sig_addr, int cmp, int32_t cmp_value,
                                                    shmemx_stream_t* stream) SHMEM_NOEXCEPT;

/* The beginning of this PE's symmetric heap. Not to be freed. */
SHMEM_API void* shmemx_heap_base(void) SHMEM_NOEXCEPT;

/* ---- 32-bit signals, as Ascend SHMEM has them ---- */
SHMEM_API void shmemx_signal32_set(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_signal32_add(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_fetch(const int32_t* sig_addr) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#include "shmemx_compat.h"
#include "shmemx_kv.h"

#if defined(__cplusplus) && !defined(SHMEM_NO_OVERLOADS)
#include "shmem_overloads.h"
#endif

#endif
