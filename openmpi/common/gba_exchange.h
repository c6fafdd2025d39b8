/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A non-blocking allgather of a few bytes among the members of a communicator: each sends to the first member, which
 * sends the table to all. The messages have their own tags, so that it does not matter which collectives of the
 * communicator are under way. For setting up, not for speed.
 */
#ifndef GBA_OMPI_EXCHANGE_H
#define GBA_OMPI_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct ompi_communicator_t;
struct ompi_request_t;

enum { GBA_OMPI_EXCHANGE_BYTES = 64 }; /* of a member */

/* Tags that no other part of Open MPI uses: above those of its collectives, which begin at -10, below MPI_ANY_TAG.
 * Small, since some networks carry only 24 bits. */
enum {
  GBA_OMPI_TAG_UP = -3,
  GBA_OMPI_TAG_DOWN = -4,
  GBA_OMPI_TAG_SOFTWARE = -5,
  GBA_OMPI_TAG_REMOTE_COLL = -6,
  GBA_OMPI_TAG_REMOTE_SCOLL = -7
};

/* The members: ranks[i] of the communicator is member i, or rank i if `ranks` is NULL. What it points to must stay. */
typedef struct gba_ompi_team_t {
  struct ompi_communicator_t* comm;
  const int* ranks;
  int members;
  int self;     /* which member this process is */
  int up, down; /* tags of messages to the first member and from it, which no other team with the same first member has
                 * on this communicator */
} gba_ompi_team_t;

/* Zeroed: none is under way. */
typedef struct gba_ompi_exchange_t {
  gba_ompi_team_t team;
  unsigned char mine[GBA_OMPI_EXCHANGE_BYTES];
  unsigned char* table; /* [members][GBA_OMPI_EXCHANGE_BYTES], complete when progress has said 0 */
  struct ompi_request_t** requests;
  int open;     /* of the requests, the first ones */
  int answered; /* first member: the table is on its way */
} gba_ompi_exchange_t;

/* 0 or a negative errno. `size` is at most GBA_OMPI_EXCHANGE_BYTES, the same everywhere. Exchanges of one team are
 * begun one after the other. */
int gba_ompi_exchange_begin(gba_ompi_exchange_t* exchange, const gba_ompi_team_t* team, const void* mine, size_t size);
/* 0: the table is complete, and nothing is under way. -EAGAIN: not yet. -EIO: a message has failed. */
int gba_ompi_exchange_progress(gba_ompi_exchange_t* exchange);
/* On member 0: a message from `member`, or to it, is not complete. */
bool gba_ompi_exchange_awaits(const gba_ompi_exchange_t* exchange, int member);
/* The bytes of `member`. */
const void* gba_ompi_exchange_of(const gba_ompi_exchange_t* exchange, int member);
/* Frees what it holds. Cancels what is under way: for the end of the program only. */
void gba_ompi_exchange_end(gba_ompi_exchange_t* exchange);

#endif
