/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a communicator (or group) agree whether the device does their barriers. All decide the same from the
 * same table, without blocking:
 *   1. each offers a port, its own or a neighbour's, its node, and the board of its node;
 *   2. each attaches to its node's board; the first that holds a port allocates a group and sends its handle;
 *   3. each joins and sends the result. If all have joined, the group is used.
 */
#ifndef GBA_OMPI_SETUP_H
#define GBA_OMPI_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "gba_board.h"
#include "gba_decide.h"
#include "gba_exchange.h"
#include "gba_port.h"
#include "gba_remote.h"

typedef enum gba_ompi_stage_t {
  GBA_OMPI_OFFERING,
  GBA_OMPI_ALLOCATING,
  GBA_OMPI_JOINING,
  GBA_OMPI_DECIDED,
} gba_ompi_stage_t;

typedef struct gba_ompi_setup_t {
  opal_mutex_t lock; /* for all of it; callers hold it */
  gba_ompi_team_t team;
  gba_ompi_port_t* port;
  gba_ompi_channel_t* channel;
  gba_ompi_stage_t stage;
  gba_ompi_exchange_t exchange;
  gba_ompi_offer_t* offers; /* [members] */
  gba_ompi_board_t board;
  gba_group_handle handle;
  int error; /* of this member, not sent yet */
  uint32_t* sharers;
  uint32_t* leaders; /* of other nodes: ranks of MPI_COMM_WORLD */
  gba_ompi_remote_group_t remote;
  gba_ompi_decision_t decision;
  gba_ompi_barrier_t barrier; /* ready when the decision is GBA_OMPI_USED */
  char trouble[512];          /* of this member; "": none */
} gba_ompi_setup_t;

/* NULL if there is no memory. */
gba_ompi_setup_t* gba_ompi_setup_new(void);
/* `port_error` is what opening `port` gave; the port and the channel must stay. Never fails: errors
 * are sent to all. */
void gba_ompi_setup_begin(gba_ompi_setup_t* setup, const gba_ompi_team_t* team, gba_ompi_port_t* port, int port_error,
                          gba_ompi_channel_t* channel);
/* 0: decided. -EAGAIN: not yet. */
int gba_ompi_setup_progress(gba_ompi_setup_t* setup);
/* Leaves, at whatever stage it is; uapi rule 28 lets members do so in any order. Frees it, at once or when other nodes
 * do not need it any more. NULL is allowed. REQUIRES: the lock is not held. */
void gba_ompi_setup_free(gba_ompi_setup_t* setup);
/* The decision in words. */
void gba_ompi_setup_text(const gba_ompi_setup_t* setup, char* text, size_t size);

#endif
