/* SPDX-License-Identifier: Apache-2.0 */
/* What the members of a communicator (or group) decide from the offers of all: the same on each. Independent of Open
 * MPI. */
#ifndef GBA_OMPI_DECIDE_H
#define GBA_OMPI_DECIDE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gba_board.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GBA_OMPI_OFFER_BYTES = 64 };

/* For `holder`: any. These members are spread over the holders on their node. */
#define GBA_OMPI_ANY_HOLDER UINT32_MAX

/* What a member offers. */
typedef struct gba_ompi_offer_t {
  int32_t error; /* 0, or the negative errno of what keeps it from a device */
  int32_t node;  /* the first member that is on the same node */
  uint32_t local_rank;
  uint32_t holder; /* local rank of the process whose port it uses; its own if it holds one; GBA_OMPI_ANY_HOLDER */
  gba_ompi_board_name_t board; /* of the first member of a node */
  unsigned char reserved[32];
} gba_ompi_offer_t;
static_assert(sizeof(gba_ompi_offer_t) == GBA_OMPI_OFFER_BYTES, "tables of them are exchanged");

typedef enum gba_ompi_reason_t {
  GBA_OMPI_USED,       /* none: the device is used */
  GBA_OMPI_NO_DEVICE,  /* a member has none */
  GBA_OMPI_NO_HOLDER,  /* the process that holds a member's port is not a member */
  GBA_OMPI_NO_GROUP,   /* the device has no group left, or does not answer */
  GBA_OMPI_NOT_JOINED, /* a member could not join, or not open its node's board */
  GBA_OMPI_NO_MESSAGE  /* the exchange has failed */
} gba_ompi_reason_t;

typedef struct gba_ompi_decision_t {
  gba_ompi_reason_t reason;
  int member; /* that is the reason; -1: none */
  int error;  /* negative errno, or 0 */
} gba_ompi_decision_t;

/* The decision that follows from the table of all offers. */
gba_ompi_decision_t gba_ompi_decide(const gba_ompi_offer_t* offers, int members);
/* The member whose port `member` uses; -1: not a member. */
int gba_ompi_holder_of(const gba_ompi_offer_t* offers, int members, int member);
bool gba_ompi_holds(const gba_ompi_offer_t* offer);
/* How many of the first `members` hold a port: which of the group `members` itself is, if it holds one. */
uint32_t gba_ompi_holders(const gba_ompi_offer_t* offers, int members);
/* How many of the first `members` are on the node of `node`: which place of its board `members` has, if it is there. */
uint32_t gba_ompi_locals(const gba_ompi_offer_t* offers, int members, int node);
/* The places of the members that share the port of `holder`; `places` has room for as many as there are members. */
uint32_t gba_ompi_sharers(const gba_ompi_offer_t* offers, int members, int holder, uint32_t* places);
/* The first member of each node but that of `self`; `leaders` has room for as many as there are members. */
uint32_t gba_ompi_remote_leaders(const gba_ompi_offer_t* offers, int members, int self, uint32_t* leaders);
/* "rank 3 cannot use a device (Permission denied)". */
void gba_ompi_decision_text(const gba_ompi_decision_t* decision, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
