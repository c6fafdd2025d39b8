/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a communicator (or group) agree whether the device does their barriers. All of them decide the same,
 * from the same table, and none of them blocks:
 *   1. each offers what it has: a port or a neighbour's, its node, and the board of its node;
 *   2. the first who holds a port allocates and enables a group, and tells its handle;
 *   3. each attaches to its node's board and joins, and tells how that went. If all have, the group is used.
 */
#ifndef GBA_OMPI_SETUP_H
#define GBA_OMPI_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "gba/gba.h"
#include "gba_barrier.h"
#include "gba_board.h"
#include "gba_exchange.h"
#include "gba_port.h"

/* What a member offers. */
typedef struct gba_ompi_offer_t {
  int32_t error; /* 0, or the negative errno of what keeps it from a device */
  int32_t node;  /* the first member that is on the same node */
  uint32_t local_rank;
  uint32_t holder;             /* local rank of the process whose port it uses; its own if it holds one */
  gba_ompi_board_name_t board; /* of the first member of a node */
  unsigned char reserved[32];
} gba_ompi_offer_t;
_Static_assert(sizeof(gba_ompi_offer_t) == GBA_OMPI_EXCHANGE_BYTES, "a table of offers is what an exchange gives");

typedef enum gba_ompi_reason_t {
  GBA_OMPI_USED,       /* none: the device is used */
  GBA_OMPI_NO_DEVICE,  /* a member has none */
  GBA_OMPI_NO_HOLDER,  /* who holds a member's port is no member */
  GBA_OMPI_NODES,      /* the members are on several nodes */
  GBA_OMPI_NO_GROUP,   /* the device has no group left, or does not answer */
  GBA_OMPI_NOT_JOINED, /* a member could not join, or not open its node's board */
  GBA_OMPI_NO_MESSAGE  /* the exchange has failed */
} gba_ompi_reason_t;

typedef struct gba_ompi_decision_t {
  gba_ompi_reason_t reason;
  int member; /* whose fault; -1: nobody's */
  int error;  /* negative errno, or 0 */
} gba_ompi_decision_t;

/* What the table of all offers means. */
gba_ompi_decision_t gba_ompi_decide(const gba_ompi_offer_t* offers, int members);
/* The member whose port `member` uses; -1: it is none. */
int gba_ompi_holder_of(const gba_ompi_offer_t* offers, int members, int member);

typedef enum gba_ompi_stage_t {
  GBA_OMPI_OFFERING,
  GBA_OMPI_ALLOCATING,
  GBA_OMPI_JOINING,
  GBA_OMPI_DECIDED,
} gba_ompi_stage_t;

/* Zeroed: nothing has begun. */
typedef struct gba_ompi_setup_t {
  gba_ompi_party_t party;
  gba_ompi_port_t* port;
  gba_ompi_stage_t stage;
  gba_ompi_exchange_t exchange;
  gba_ompi_offer_t* offers; /* [members] */
  gba_ompi_board_t board;
  gba_group_handle handle;
  bool owner; /* of the group of `handle` */
  gba_group* group;
  uint32_t* sharers;
  gba_ompi_decision_t decision;
  gba_ompi_barrier_t barrier; /* ready when the decision is GBA_OMPI_USED; it must stay where it is */
  char trouble[512];          /* of this member; "": none */
} gba_ompi_setup_t;

/* `port_error` is what opening `port` gave; the port must stay. Never fails: what goes wrong here is told to all. */
void gba_ompi_setup_begin(gba_ompi_setup_t* setup, const gba_ompi_party_t* party, gba_ompi_port_t* port,
                          int port_error);
/* 0: decided. -EAGAIN: not yet. */
int gba_ompi_setup_progress(gba_ompi_setup_t* setup);
/* Leaves and gives back everything, at whatever stage it is; uapi rule 28 lets members do so in any order. */
void gba_ompi_setup_end(gba_ompi_setup_t* setup);
/* The decision in words: "rank 3 cannot use a device (Permission denied)". */
void gba_ompi_setup_text(const gba_ompi_setup_t* setup, char* text, size_t size);

#endif
