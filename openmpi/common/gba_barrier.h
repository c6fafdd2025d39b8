/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barriers of one communicator or group, as one of its members sees them: a state machine that never blocks. It
 * knows libgba and a board, and nothing of Open MPI. One thread at a time may use a barrier.
 *
 * Rules 25 to 28 of uapi/README.md, with the board as the memory that all members read. What differs: instead of a word
 * that says PULL, the node has one word for the last barrier that is to be finished by words (`pull`), which also
 * reaches who waits for the barrier before; of members that share a port, one rings for all of them, and only when all
 * say ON; and other nodes are told by messages.
 */
#ifndef GBA_OMPI_BARRIER_H
#define GBA_OMPI_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "gba/gba.h"
#include "gba_board.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What reaches the leaders of other nodes. */
typedef struct gba_ompi_far_t {
  void* context;
  uint32_t nodes; /* others, as every member knows; 0: all members are on this node */
  /* All members of this node have arrived at k, with these votes: to be told to the leaders of all other nodes, once
   * and in order. Of the leader alone; it may be called from within any call here, and must not call back. */
  void (*tell)(void* context, uint64_t k, uint64_t votes);
} gba_ompi_far_t;

/* What a leader has heard of one barrier. */
typedef struct gba_ompi_heard_t {
  uint64_t k;
  uint64_t votes;
  uint32_t nodes; /* that have told it */
} gba_ompi_heard_t;

/* Zero everything, then set what is said to be given. */
typedef struct gba_ompi_barrier_t {
  /* Given, and as they are for good. */
  gba_ompi_board_t* board;
  uint32_t local;          /* this member's place on the board; 0: the leader of the node */
  uint32_t holder;         /* the place of the one whose port it uses: its own if it holds one */
  gba_group* group;        /* of a holder; NULL: shares */
  const uint32_t* sharers; /* of a holder: the places of those who share its port; they must stay there */
  uint32_t sharer_count;
  gba_ompi_far_t far;

  uint64_t k; /* the barrier that is open, or the last one. Given: that before the first, the group's `sequence` */
  bool open;
  bool rung;        /* a holder: the doorbell, for k */
  bool pulled;      /* k is to be finished by words */
  bool off;         /* this member votes OFF from now on, and never rings again */
  bool over;        /* all members go on without the device: the next barrier is somebody else's */
  uint32_t asked;   /* a holder: so many of its sharers have arrived at k */
  uint64_t told[2]; /* leader: the last barriers told to other nodes, by k & 1 */
  gba_ompi_heard_t heard[2];
  uint64_t by_device, by_words; /* how barriers were finished */
  int failure;                  /* of libgba, why this member is off; 0: it is not, or because of others */
  char trouble[256];            /* the same in words; "": it is not off */
} gba_ompi_barrier_t;

/* Arrives at the next one. REQUIRES: none is open, !over. */
void gba_ompi_barrier_start(gba_ompi_barrier_t* barrier);
/* 0: done, or none is open; look at `over` then. -EAGAIN: not yet. No errors: a barrier is always finished somehow, as
 * long as all members arrive. */
int gba_ompi_barrier_test(gba_ompi_barrier_t* barrier);
/* As test, for a barrier that lasts: mends a lost doorbell or release. Sleeps at most `max_ns`, which may be 0; who
 * does not wait for the device sleeps at most a millisecond, since nobody wakes it. */
int gba_ompi_barrier_sleep(gba_ompi_barrier_t* barrier, uint64_t max_ns);
/* This member has had trouble with the device that the group does not know of: finishes the open barrier by words, and
 * votes OFF from the next one. `failure` and `trouble` as above. */
void gba_ompi_barrier_turn_off(gba_ompi_barrier_t* barrier, int failure, const char* trouble);
/* Leader, whether or not a barrier is open, and after the last one until all other nodes have left: answers other
 * nodes. Costs a load where nobody has asked. */
void gba_ompi_barrier_progress(gba_ompi_barrier_t* barrier);
/* Leader: another node's leader has told k. Each tells a barrier once; in which order does not matter. */
void gba_ompi_barrier_heard(gba_ompi_barrier_t* barrier, uint64_t k, uint64_t votes);
/* Who of this node has not arrived at the open barrier: bits of local places, 64 a word, up to `words`. */
void gba_ompi_barrier_missing(const gba_ompi_barrier_t* barrier, uint64_t* mask, uint32_t words);

#ifdef __cplusplus
}
#endif

#endif
