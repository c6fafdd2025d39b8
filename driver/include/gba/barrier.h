/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lossless barriers: a barrier of the device that completes in software when the device, or one member's way to it, is
 * lost. The protocol is uapi/README.md, rules 25 to 33; this is its only implementation, on top of gba/gba.h.
 *
 * Words. Each member has two words of its own in memory that all members can read. Before it rings the device for
 * barrier k it publishes `word[k & 1] = k << 2 | vote` there. If nothing fails, no member reads the words. A member
 * that cannot learn of k from the device *pulls* k: it tells the others, and completes k by reading each member's
 * word. A barrier with an OFF word released no member, so all members pull it, all see the OFF, and all know that
 * the next barrier is software's.
 *
 * Shapes. What the members have in common is said by gba_barrier_config:
 *  - Shared memory: `words` and `stride` say where each member's words are mapped.
 *  - A network: `read` fetches a member's word, and in place of marking its own word a member that pulls sets an alarm
 *    in the memory of each other member (`alarm`, `raise`).
 *  - Several nodes, each with shared memory: one alarm word for each node, and a pair of words that stands for all
 *    members elsewhere (`alarm`, `elsewhere`); how they get there is the caller's business.
 *  - Several members behind one port: one of them, the holder, rings for all (`released`, `sharers`).
 * All memory is the caller's, stays until the barrier is destroyed, and is accessed by atomic 8-byte loads and stores.
 * Words and alarms start below any sequence that is used; a place that was used before goes on where it had got to.
 *
 * Use. All members create a barrier and agree on a group: one calls gba_barrier_offer, all call gba_barrier_join, and
 * if all of them could, all call gba_barrier_begin. Then, for k = sequence + 1, + 2, ...:
 *
 *     gba_barrier_arrive(barrier, k);
 *     int result = gba_barrier_wait(barrier, &waiting, timeout_ns);
 *
 * While gba_barrier_uses_device() is 0, barriers are software's: either the same two calls, which then complete the
 * barrier by words alone, or an algorithm of the caller's own, for which see gba_barrier_conclude. It changes at the
 * end of a barrier only, at the same one for all members, and to 0 only after a result of GBA_BARRIER_COMPLETED.
 *
 * Results. GBA_BARRIER_RELEASED or GBA_BARRIER_COMPLETED: the barrier is over, and what all members stored before they
 * arrived is visible. -EAGAIN: not yet. Any other negative errno: it cannot be completed, because a member is lost (the
 * errno is that of `read`), because `check` said so, or -ETIMEDOUT; gba_barrier_missing says who is missing. The loss
 * of the device is none of these.
 *
 * Other calls return 0 or a negative errno, and gba_error_text() says what happened, as in gba/gba.h; a NULL that is
 * not said to be allowed is -EINVAL. A barrier is used by one thread at a time; a port by any number of threads. A
 * callback may call gba_barrier_missing and gba_barrier_get_status for its barrier and nothing else, and must not
 * throw.
 *
 * Ports and barriers belong to the process that made them. To a child that it forks the device is lost for good: calls
 * on ports fail with -ENODEV, and calls on barriers, whose words are the parent's, with -ECHILD; those without a result
 * do nothing, and gba_barrier_uses_device() is 0. The child may close the ports and destroy the barriers.
 */
#ifndef GBA_BARRIER_H
#define GBA_BARRIER_H

#include <stdint.h>

#include "gba/gba.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GBA_BARRIER_RELEASED 0  /* by the device */
#define GBA_BARRIER_COMPLETED 1 /* in software: pulled, or a software barrier */

/* One in this number of software barriers is a check round, in which members that have a port agree to use the device
 * again (uapi rule 29): a few, since a program that makes few barriers takes long for many. The same for all members of
 * a job. */
#define GBA_BARRIER_PERIOD 4

typedef struct gba_barrier_port gba_barrier_port; /* this process's port, which may be lost and come back */
typedef struct gba_barrier gba_barrier;           /* one member's side of the barriers of a team */

/*
 * Opens a port as gba_open does; `path` may be NULL. Thread-safe. Errors: those of gba_open.
 */
GBA_API int gba_barrier_port_open(const char* path, gba_barrier_port** out);

/* Closes it, when the last group that was joined through it has been left. NULL is allowed. */
GBA_API void gba_barrier_port_close(gba_barrier_port* port);

/* As gba_device_get_info. Errors: -ENODEV the device is lost, or suspect. Thread-safe. */
GBA_API int gba_barrier_port_get_info(gba_barrier_port* port, gba_device_info* info);

/* Something failed at this device: it serves no new group until it is found to be healthy. Thread-safe. */
GBA_API void gba_barrier_port_mark_suspect(gba_barrier_port* port);

/* If the device is suspect: looks at it, and opens it again if it is lost, on a thread of its own, until it is healthy.
 * It tries every 50 ms at first and every 800 ms later. Thread-safe. */
GBA_API void gba_barrier_port_reopen(gba_barrier_port* port);

/* Waits up to `max_ns` until the device is healthy, if gba_barrier_port_reopen was called. 0: it is. Errors: -ENODEV it
 * is not. Thread-safe. */
GBA_API int gba_barrier_port_await(gba_barrier_port* port, uint64_t max_ns);

/* How a member reaches the others. Zero everything, then set `size` and what applies. Copied by gba_barrier_create. */
typedef struct gba_barrier_config {
  uint32_t size;          /* sizeof(gba_barrier_config) */
  uint32_t members;       /* that have words here: 0..members-1 */
  uint32_t member;        /* which one this is */
  uint32_t group_members; /* of the device's group; 0: as many as `members` */
  uint32_t group_member;  /* this one's place in it, if group_members is not 0 */

  /* Publishing and reading words. */
  uint64_t* word;        /* the two words of this member, which alone writes them */
  const uint64_t* words; /* the two words of member 0; NULL: `read` is called for every member but this one */
  int64_t stride;        /* bytes from a member's words to those of the next */
  /* Gives the word of barrier k of a member, in acquire order, or an older one. 0; or a negative errno: the member is
   * lost, and the barrier fails with that. */
  int (*read)(void* context, uint32_t member, uint64_t k, uint64_t* word);
  /* Two words like a member's, which say OFF if any of the members elsewhere does, and are there when all have arrived.
   * NULL: all members have words here. */
  const uint64_t* elsewhere;

  /* Telling others to pull. NULL and NULL: this member marks its own word with PULL, and looks at all words before it
   * sleeps. */
  uint64_t* alarm; /* not above the group's sequence as long as no member pulls; looked at whenever a release is */
  /* Sets the alarm of each other member to k, and returns when all are set: 0, or a negative errno, with which the
   * barrier fails. NULL: `alarm` is one word that all members here share, and the library raises it. */
  int (*raise)(void* context, uint64_t k);

  /* Several members behind one port: member i of `sharers` does not ring, its holder does when all of them are there.
   */
  gba_barrier_port* port;  /* NULL: this member shares the port of another one. It outlives the barrier. */
  uint64_t* released;      /* a word of the holder's, written by it alone; NULL: this port is not shared */
  const uint32_t* sharers; /* of a holder */
  uint32_t sharer_count;

  uint32_t reserved; /* 0 */
  /* Coming back to a device that was lost (uapi rules 29 to 31): a record in memory that all members read and member 0
   * writes. Each member has a port then. NULL: a device that was lost stays lost. */
  gba_group_handle* offer;
  uint64_t retry_ns; /* after a group could not be had: the first pause before the next try, which then grows; a day at
                      * most */
  void* context;     /* of the callbacks */
} gba_barrier_config;

/*
 * Creates one member's side; software does the barriers until gba_barrier_begin. Errors: -EINVAL the config has another
 * size or cannot be; -ENOMEM.
 */
GBA_API int gba_barrier_create(const gba_barrier_config* config, gba_barrier** out);

/* Leaves the group, frees it if this member owns it, and destroys the barrier. NULL is allowed. */
GBA_API void gba_barrier_destroy(gba_barrier* barrier);

/*
 * One member, which becomes the group's owner: allocates and enables a group of the device whose first barrier is
 * sequence + 1. `handle` is for the others, by whatever means the caller has; with a NULL `handle` it is written to the
 * record `offer`. Errors: -ENODEV there is no port, or its device is lost or suspect; those of gba_group_alloc and
 * gba_group_enable.
 */
GBA_API int gba_barrier_offer(gba_barrier* barrier, uint64_t sequence, gba_group_handle* handle);

/*
 * Joins the group of `handle`, or of the record `offer` if that is NULL. A member that shares a port does nothing here.
 * Nothing is used yet. Errors: -ENODEV; those of gba_group_join.
 */
GBA_API int gba_barrier_join(gba_barrier* barrier, const gba_group_handle* handle);

/*
 * After all members have joined, and each has learned of it: the device serves the barriers after `sequence`, which is
 * the sequence of the group's handle.
 */
GBA_API void gba_barrier_begin(gba_barrier* barrier, uint64_t sequence);

/*
 * To give a group back so that no member gets an error release: after the last barrier the owner disables
 * it (others do nothing), then all leave, then the owner frees it. Leaving also gives up a group that was joined or
 * offered and not begun. The device does no barriers from the first of these calls on. They fail only with the device,
 * and then there is nothing to give back.
 */
GBA_API void gba_barrier_disable(gba_barrier* barrier);
GBA_API void gba_barrier_leave(gba_barrier* barrier);
GBA_API void gba_barrier_free(gba_barrier* barrier);

/* 1: the next barrier is the device's, 0: it is software's. The same for all members. NULL: 0. */
GBA_API int gba_barrier_uses_device(const gba_barrier* barrier);

/*
 * Arrives at barrier k: publishes the word, then rings the device. A member that leaves k sees what the caller stored
 * before. While the device is used, k is one more than the last time; software barriers that the caller does with an
 * algorithm of its own may be skipped, except check rounds.
 */
GBA_API void gba_barrier_arrive(gba_barrier* barrier, uint64_t k);

/* One look at the release, at the alarm if there is one, and, if this barrier is pulled, at words. A result. */
GBA_API int gba_barrier_test(gba_barrier* barrier);

/* As test, for a caller that does nothing but test: takes a closer look, as gba_barrier_sleep without sleeping, a
 * millisecond after the first call for this barrier, and then at intervals that double to 100 ms. A result. */
GBA_API int gba_barrier_poll(gba_barrier* barrier);

/*
 * A closer look, for a barrier that takes long: repeats a lost arrival, finds a lost release or device, looks at what
 * others say, and sleeps in between for up to `max_ns`, which may be 0. Where nothing would end the sleep, it lasts a
 * millisecond at most. A result.
 */
GBA_API int gba_barrier_sleep(gba_barrier* barrier, uint64_t max_ns);

/* How gba_barrier_wait waits. Zeroed: it sleeps after the first look. */
typedef struct gba_barrier_waiting {
  uint32_t spins;  /* looks with a pause of the processor between them */
  uint32_t yields; /* then, looks with a yield between them */
  void* context;   /* of what follows; each may be NULL */
  /* Between two looks: work that others wait for. */
  void (*progress)(void* context);
  /* In place of sched_yield. 0: yielding does not pay, go on to sleep. */
  int (*yield)(void* context);
  /* Before each sleep. It may shorten the next sleep: *longest_ns. 0; or a negative errno, which ends the wait. */
  int (*check)(void* context, uint64_t* longest_ns);
  /* In place of nanosleep, where it is not the device that is waited for. */
  void (*nap)(void* context, uint64_t ns);
} gba_barrier_waiting;

/*
 * Waits for the end of the barrier: spins, yields, then sleeps, longer each time, up to 100 ms (a millisecond while it
 * waits for words). `timeout_ns` may be GBA_WAIT_FOREVER. A result but -EAGAIN. After an error the wait can be taken up
 * again.
 */
GBA_API int gba_barrier_wait(gba_barrier* barrier, const gba_barrier_waiting* waiting, uint64_t timeout_ns);

/*
 * For callers with a software algorithm of their own, in place of test and wait. In a check round (k %
 * GBA_BARRIER_PERIOD
 * == 0, while the device is not used and the config has an `offer`) each member calls gba_barrier_arrive(k), then does
 * its whole barrier, then calls this before it arrives at k + 1. gba_barrier_uses_device() may be 1 after it.
 */
GBA_API void gba_barrier_conclude(gba_barrier* barrier);

/*
 * This member has trouble with the device that the library cannot know of: it completes the open barrier by words, and
 * votes OFF from the next one on. `failure` is a negative errno, `trouble` says it in words; see gba_barrier_status.
 */
GBA_API void gba_barrier_turn_off(gba_barrier* barrier, int failure, const char* trouble);

/*
 * A mask of the members missing in the open barrier, as far as this one knows: by words if they are mapped,
 * else from the device, else the member whose word is waited for. Errors: -EINVAL; those of gba_group_missing.
 */
GBA_API int gba_barrier_missing(gba_barrier* barrier, uint64_t mask[GBA_GROUP_MASK_WORDS]);

typedef struct gba_barrier_status {
  uint64_t sequence;    /* of the last arrival */
  uint64_t by_device;   /* barriers of this member that the device released */
  uint64_t in_software; /* that were completed by words; not those of the caller's own algorithm */
  uint64_t served;      /* by_device, of the group that is used, or else of the last one */
  uint32_t uses_device; /* gba_barrier_uses_device */
  uint32_t open;        /* 1: arrived, and not over */
  uint32_t pulled;      /* 1: and to be completed by words */
  int32_t failure;      /* why this member stopped using the last group: negative errno; 0: because others did */
  const char* trouble;  /* the same in words, or ""; valid until the next call for this barrier */
} gba_barrier_status;

/* Errors: -EINVAL. */
GBA_API int gba_barrier_get_status(const gba_barrier* barrier, gba_barrier_status* status);

#ifdef __cplusplus
}
#endif

#endif
