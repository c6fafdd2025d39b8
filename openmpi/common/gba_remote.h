/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the leaders of nodes (the first member on each) about barriers that have to be completed without the
 * device: on MPI_COMM_WORLD with a tag of their own, answered in the progress engine. A leader that has freed the
 * communicator still answers until no member of any node needs it, since others may not have been released yet.
 */
#ifndef GBA_OMPI_REMOTE_H
#define GBA_OMPI_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "ompi_config.h"

#include "gba_board.h"
#include "gba_release.h"

struct gba_ompi_message_t;
struct gba_ompi_channel_t;

/* A communicator whose members are on several nodes, as its leader on one of them sees it. */
typedef struct gba_ompi_remote_group_t {
  struct gba_ompi_remote_group_t* next;
  struct gba_ompi_channel_t* channel; /* NULL: none */
  uint64_t id;                        /* the same for all leaders, and of no other group */
  const uint32_t* leaders;            /* ranks of MPI_COMM_WORLD of the others; its owner's */
  gba_ompi_barrier_t* barrier;
  opal_mutex_t* lock;       /* for the barrier */
  uint32_t finished_nodes;  /* other nodes that need no answers any more */
  _Atomic bool retired;     /* this process needs none */
  bool sent_end;            /* nor do the other members on this node */
  void (*end)(void* owner); /* frees the owner, when no node needs the group */
  void* owner;
} gba_ompi_remote_group_t;

/* One for each component. Zeroed, except for the given members. Its functions may be called by any thread. */
typedef struct gba_ompi_channel_t {
  int tag;           /* given */
  opal_mutex_t lock; /* for the lists; given, constructed */
  gba_ompi_remote_group_t* groups;
  struct gba_ompi_message_t* queue;     /* the send queue, the newest first */
  struct gba_ompi_message_t* in_flight; /* used by progress alone, as what follows */
  uint64_t next_run;                    /* ns */
} gba_ompi_channel_t;

/* Before any other leader can need an answer. Given: `id` to `lock`, `end` and `owner`; the rest is 0. */
void gba_ompi_remote_add(gba_ompi_channel_t* channel, gba_ompi_remote_group_t* group);
/* For gba_ompi_remote_t of the barrier; `group` is a gba_ompi_remote_group_t. */
void gba_ompi_remote_send(void* group, uint64_t k, uint64_t votes);
/* This process does not need the group any more. */
void gba_ompi_remote_retire(gba_ompi_remote_group_t* group);
/* At once, without messages. */
void gba_ompi_remote_remove(gba_ompi_remote_group_t* group);

/* There are groups or messages to wait for. */
bool gba_ompi_remote_needed(gba_ompi_channel_t* channel);
/* One step. REQUIRES: one thread at a time, not from within itself. */
void gba_ompi_remote_progress(gba_ompi_channel_t* channel);
/* MPI_Finalize has reached the point from which no messages can be sent. */
bool gba_ompi_remote_is_finalized(void);
/* At the end of the program: ends all groups. */
void gba_ompi_remote_end(gba_ompi_channel_t* channel);

#endif
