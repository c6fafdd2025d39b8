/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the leaders of nodes, each the first of its members, tell each other once a barrier has to be finished without
 * the device: messages on MPI_COMM_WORLD with a tag of their own, answered in the progress engine. One who has freed
 * the communicator still answers, since others may not have been released yet: until no member of any node needs it.
 */
#ifndef GBA_OMPI_FAR_H
#define GBA_OMPI_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "ompi_config.h"

#include "gba_barrier.h"
#include "opal/threads/mutex.h"

struct gba_ompi_far_message_t;
struct gba_ompi_far_channel_t;

/* A communicator whose members are on several nodes, as the leader of one of them sees it. */
typedef struct gba_ompi_far_group_t {
  struct gba_ompi_far_group_t* next;
  struct gba_ompi_far_channel_t* channel; /* NULL: it is on none */
  uint64_t id;                            /* the same for all leaders, and of no other group */
  const uint32_t* leaders;                /* ranks of MPI_COMM_WORLD of the others; they stay its owner's */
  gba_ompi_barrier_t* barrier;
  opal_mutex_t* lock;       /* for the barrier */
  uint32_t byes;            /* other nodes that need no answers any more */
  _Atomic bool retired;     /* this process needs none */
  bool said_bye;            /* nor do the other members on this node */
  void (*end)(void* owner); /* when nobody needs it: gives it back */
  void* owner;
} gba_ompi_far_group_t;

/* One for each component. Zeroed, but for what is to be given. Its functions may be called by any thread. */
typedef struct gba_ompi_far_channel_t {
  int tag;           /* given */
  opal_mutex_t lock; /* for the lists; given, constructed */
  gba_ompi_far_group_t* groups;
  struct gba_ompi_far_message_t* outbox; /* the last one first */
  struct gba_ompi_far_message_t* sent;   /* used by progress alone, as what follows */
  uint64_t next_look;                    /* ns */
} gba_ompi_far_channel_t;

/* Before any other leader can need an answer. Given: `id` to `lock`, `end` and `owner`; the rest is 0. */
void gba_ompi_far_add(gba_ompi_far_channel_t* channel, gba_ompi_far_group_t* group);
/* For gba_ompi_far_t of the barrier; `group` is a gba_ompi_far_group_t. */
void gba_ompi_far_tell(void* group, uint64_t k, uint64_t votes);
/* This process is done with it. */
void gba_ompi_far_retire(gba_ompi_far_group_t* group);
/* Without another word. */
void gba_ompi_far_remove(gba_ompi_far_group_t* group);

/* Whether there is anything to wait for. */
bool gba_ompi_far_needed(gba_ompi_far_channel_t* channel);
/* A step. Called by one thread at a time, and not from within itself. */
void gba_ompi_far_progress(gba_ompi_far_channel_t* channel);
/* Whether MPI has come so far in its end that there are no messages any more. */
bool gba_ompi_far_is_finalized(void);
/* At the end of the program: ends all groups. */
void gba_ompi_far_end(gba_ompi_far_channel_t* channel);

#endif
