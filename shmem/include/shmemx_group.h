/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of processes that a program forms itself: collective calls and messages on ordinary memory, for libraries such
 * as torch.distributed. A group needs neither shmem_init nor a launcher, only a key-value store that its members share;
 * a process may be in any number of groups, and ends them in any order. No call ends the process: each returns 0 or a
 * negative errno, and shmemx_error_text (shmemx.h) names the ranks that it is about. (UCX, between nodes, may end one
 * that has no memory.)
 *
 * If the ranks are on several nodes, those of a node share memory, and nodes send messages to each other through UCX.
 * Symmetric memory is shared by the ranks of a node.
 *
 * After a member has died, has left the group, or did not come in time, all calls on the group fail with that error, on
 * all members; so they do after -ENOMEM in a collective call, or if there is no memory for messages that are under way.
 * -ENOMEM of a call that begins a message: it has not begun, and the group goes on. Calls that differ between members
 * fail on all of them, and the group goes on. Barriers go through a GBA if the process has a port of one that no other
 * group, and no shmem_init, has taken; such a barrier is not compared with other calls, unless SHMEM_DEBUG is set for
 * all members.
 *
 * Handles belong to the process that got them. In a process forked from it, every call on one fails with -EPERM (those
 * that return a pointer or a type: NULL or 0) and has no effect on the members; shmemx_group_destroy and the _free
 * calls forget the handle. Such a process can create groups of its own.
 */
#ifndef SHMEM_SHMEMX_GROUP_H
#define SHMEM_SHMEMX_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shmemx_group_t shmemx_group_t;

/* Both return 0, or a negative errno; `get` waits until the key exists, and fills `size` bytes, the value's size. If it
 * returns -EAGAIN after a moment, for a key that does not exist yet, the library calls it again, and a member that dies
 * meanwhile ends the wait. The library sets a few keys for each member, and uses the store in shmemx_group_create only.
 */
typedef struct shmemx_group_store_t {
  void* context;
  int (*set)(void* context, const char* key, const void* value, size_t size);
  int (*get)(void* context, const char* key, void* value, size_t size);
} shmemx_group_store_t;

/* Collective over the members: ranks 0 to size - 1 with one store, in which no other group has set keys. Errors: those
 * of the store; -EINVAL; -EOWNERDEAD a member has died; -ENOTSUP the ranks are on several nodes, and libshmem was built
 * without UCX; -ENOMEM; -EPROTONOSUPPORT different versions. */
SHMEM_API int shmemx_group_create(const shmemx_group_store_t* store, int rank, int size,
                                  shmemx_group_t** group) SHMEM_NOEXCEPT;
/* Not collective. Calls of this process on the group have ended; messages that are under way fail. Other members that
 * wait for this one, now or later, get -EOWNERDEAD within about a second, with a text that says that it has left the
 * group; on several nodes -ECONNRESET, and this call waits up to a second for the others to leave, too. */
SHMEM_API void shmemx_group_destroy(shmemx_group_t* group) SHMEM_NOEXCEPT;

enum shmemx_group_kind {
  SHMEMX_GROUP_BARRIER,
  SHMEMX_GROUP_BROADCAST,      /* from[0] of the root to to[0] of the others */
  SHMEMX_GROUP_ALLREDUCE,      /* from[0] of all, combined, to to[0] of all */
  SHMEMX_GROUP_REDUCE,         /* to to[0] of the root */
  SHMEMX_GROUP_ALLGATHER,      /* from[0] of rank i to to[i] of all */
  SHMEMX_GROUP_GATHER,         /* to to[i] of the root */
  SHMEMX_GROUP_SCATTER,        /* from[i] of the root to to[0] of rank i */
  SHMEMX_GROUP_REDUCE_SCATTER, /* from[i] of all, combined, to to[0] of rank i */
  SHMEMX_GROUP_ALLTOALL        /* from[i] of rank j to to[j] of rank i, with sizes */
};
enum shmemx_group_type {
  SHMEMX_GROUP_BOOL,
  SHMEMX_GROUP_UINT8,
  SHMEMX_GROUP_INT8,
  SHMEMX_GROUP_INT16,
  SHMEMX_GROUP_INT32,
  SHMEMX_GROUP_INT64,
  SHMEMX_GROUP_FLOAT16,
  SHMEMX_GROUP_BFLOAT16,
  SHMEMX_GROUP_FLOAT32,
  SHMEMX_GROUP_FLOAT64,
  SHMEMX_GROUP_BYTES /* of any other type: it cannot be combined */
};
enum shmemx_group_operation {
  SHMEMX_GROUP_SUM,
  SHMEMX_GROUP_AVERAGE, /* of floating-point types */
  SHMEMX_GROUP_PRODUCT,
  SHMEMX_GROUP_MIN, /* NaN if one of the numbers is */
  SHMEMX_GROUP_MAX, /* the same */
  SHMEMX_GROUP_AND, /* bitwise; of integers */
  SHMEMX_GROUP_OR,
  SHMEMX_GROUP_XOR
};

/* The same on all members, but for the buffers. Pointers to `from` that are not needed may be NULL; a result may be
 * written to where its data came from. */
typedef struct shmemx_group_call_t {
  int32_t kind, type, operation, root;
  uint64_t bytes;      /* of each buffer; not of ALLTOALL */
  uint64_t timeout_ns; /* 0: none */
  const void* const* from;
  void* const* to;
  const uint64_t* from_bytes; /* ALLTOALL only: of each buffer */
  const uint64_t* to_bytes;
} shmemx_group_call_t;

/* Collective. One thread at a time; members make their calls in the same order. Errors: -EINVAL the calls of the
 * members differ, or cannot be made; -ETIMEDOUT; -EOWNERDEAD a member has died or has left the group; -ECANCELED
 * another member has seen one of these. On several nodes: -ECONNRESET instead of -EOWNERDEAD, or a member cannot be
 * reached. */
SHMEM_API int shmemx_group_run(shmemx_group_t* group, const shmemx_group_call_t* call) SHMEM_NOEXCEPT;
/* The same. The members' calls differ (-EINVAL on all of them) also if their signatures do: a number that says what
 * else shall be the same, such as a hash of the shape of the data. */
SHMEM_API int shmemx_group_run_signed(shmemx_group_t* group, const shmemx_group_call_t* call,
                                      uint32_t signature) SHMEM_NOEXCEPT;

/* Symmetric memory: `bytes` > 0 of each member, zero at first, aligned to 2 MiB. Collective like shmemx_group_run; all
 * members ask for the same size. If the members are on one node, calls whose buffers are all in it (on all members, in
 * one or several such memories) copy nothing to the library: each member reads the buffers of the others, and combines
 * into them. Other calls may use it as any memory. Small calls (up to 64 KiB; ALLREDUCE and REDUCE: about a KiB), for
 * which a copy is faster, and calls whose buffers overlap are made as with other memory. Each member frees `memory`
 * when it likes, before or after the group ends. After a call has failed, other members may still write to its buffers.
 * Errors: those of shmemx_group_run; -ENOMEM, -EMFILE. */
typedef struct shmemx_group_memory_t shmemx_group_memory_t;
SHMEM_API int shmemx_group_allocate(shmemx_group_t* group, size_t bytes, uint64_t timeout_ns,
                                    shmemx_group_memory_t** memory) SHMEM_NOEXCEPT;
SHMEM_API void* shmemx_group_memory_address(const shmemx_group_memory_t* memory) SHMEM_NOEXCEPT;
/* The memory of another member, for loads and stores, until this process frees its own. NULL: there is no such rank, or
 * it is on another node. */
SHMEM_API void* shmemx_group_memory_of(const shmemx_group_memory_t* memory, int rank) SHMEM_NOEXCEPT;
/* Not collective. No call of this process uses it any more. */
SHMEM_API void shmemx_group_memory_free(shmemx_group_memory_t* memory) SHMEM_NOEXCEPT;

/* For programs that wait in symmetric memory for a store of another member: look from time to time. Not collective, any
 * thread. 0: that member is there; -EOWNERDEAD it has ended, or has left the group; -ECANCELED the group has failed. */
SHMEM_API int shmemx_group_check(shmemx_group_t* group, int rank) SHMEM_NOEXCEPT;

/* Ends the calls and messages of all members that run, within milliseconds, and refuses later ones: they fail with
 * -ECANCELED and a text that names this member and its reason (NULL: none is given); on other nodes with -ECONNRESET,
 * which also ends calls there that wait. Not collective, any thread; it does not wait for the others. The group must
 * still be destroyed. */
SHMEM_API int shmemx_group_abort(shmemx_group_t* group, const char* reason) SHMEM_NOEXCEPT;

/* For a program that waits for a collective call of another thread, and gives up: which ranks have not begun that call,
 * as "rank 1 (pid 71 on kiwi), rank 3 (...)", cut to `size` bytes with the zero that ends it; "": all have, or no call
 * runs. On several nodes it names those of this node; if they all have, "ranks on other nodes, if any". Not collective,
 * any thread. */
SHMEM_API int shmemx_group_missing(shmemx_group_t* group, char* text, size_t size) SHMEM_NOEXCEPT;

/* What this member has done since the group was created. */
typedef struct shmemx_group_statistics_t {
  uint64_t calls;           /* of shmemx_group_run, without an error */
  uint64_t direct_calls;    /* of these, on symmetric memory */
  uint64_t staged_bytes;    /* that were copied to the library, because a call was not direct */
  uint64_t direct_messages; /* received, that were copied straight from the sender's buffer */
  uint64_t device_barriers; /* barriers that went through the Global Barrier Accelerator */
  uint64_t sent_bytes;      /* to members on other nodes; all else goes through shared memory */
} shmemx_group_statistics_t;
SHMEM_API int shmemx_group_statistics(shmemx_group_t* group, shmemx_group_statistics_t* statistics) SHMEM_NOEXCEPT;

/* Messages between two members, matched by tag, in the order in which they are sent. Any thread. The buffer belongs to
 * the call until it is over, and `source` -1 takes the first message with that tag. `done`, which may be NULL, is
 * called once, by any thread, when the call is over. A message is as long as the buffer that takes it, else the call
 * that receives it fails (-EMSGSIZE). One of more than 128 KiB is copied once, by the receiver, if its sender has it in
 * symmetric memory, or if the kernel lets the receiver read the sender's memory (process_vm_readv). Under Yama's
 * ptrace_scope 1 that works between processes of one parent: a process allows it, while it is a member of a group, to
 * its parent and the descendants of that (PR_SET_PTRACER). Under 2 or more the bytes are copied twice. */
typedef struct shmemx_group_message_t shmemx_group_message_t;
typedef void (*shmemx_group_done_t)(void* context);
SHMEM_API int shmemx_group_send(shmemx_group_t* group, const void* data, size_t bytes, int to, int tag,
                                uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                                shmemx_group_message_t** message) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_group_receive(shmemx_group_t* group, void* data, size_t bytes, int source, int tag,
                                   uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                                   shmemx_group_message_t** message) SHMEM_NOEXCEPT;
/* The same with a type: 1 to 4095, as the program numbers its types, or 0 for any. If both ends have given a type, and
 * these differ, both calls fail with -EPROTOTYPE. If the sizes differ and the sender has given a type, both calls fail
 * with -EMSGSIZE. The message is gone then, the receiver's buffer may have been written, and later messages are not
 * affected. Therefore a message with a type, however short, is over for its sender when a call has received it: two
 * ranks that each wait for their message to the other one before they receive wait until the timeout. A message whose
 * sender has timed out may still be received: that call returns 0. */
SHMEM_API int shmemx_group_send_typed(shmemx_group_t* group, const void* data, size_t bytes, uint32_t type, int to,
                                      int tag, uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                                      shmemx_group_message_t** message) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_group_receive_typed(shmemx_group_t* group, void* data, size_t bytes, uint32_t type, int source,
                                         int tag, uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                                         shmemx_group_message_t** message) SHMEM_NOEXCEPT;
/* 0: it is over; -EAGAIN: not yet; else why it failed. */
SHMEM_API int shmemx_group_message_test(shmemx_group_message_t* message) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_group_message_wait(shmemx_group_message_t* message) SHMEM_NOEXCEPT;
/* The rank that a message that is over came from. */
SHMEM_API int shmemx_group_message_source(const shmemx_group_message_t* message) SHMEM_NOEXCEPT;
/* The type that the other end of a message that is over has given. 0: none, or it is not known. */
SHMEM_API uint32_t shmemx_group_message_peer_type(const shmemx_group_message_t* message) SHMEM_NOEXCEPT;
/* Forgets a message; one that is not over goes on. The group may have been destroyed. */
SHMEM_API void shmemx_group_message_free(shmemx_group_message_t* message) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
