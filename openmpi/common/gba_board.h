/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board: memory that the members of one communicator (or group) share on one node. One of them makes an unnamed
 * file (memfd), which the others open by /proc/PID/fd/FD: a crash leaves nothing behind.
 *
 * The barriers of one member over the board: a state machine that never blocks. The protocol is libgba's
 * (gba/barrier.h), with the board as its words and its alarm; this file adds the messages between nodes. Independent of
 * Open MPI. One thread at a time may use a barrier.
 */
#ifndef GBA_OMPI_BOARD_H
#define GBA_OMPI_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "gba/barrier.h"

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> gba_ompi_word_t; /* the same in memory; unit tests are C++ */
extern "C" {
#else
#include <stdalign.h>
#include <stdatomic.h>
typedef _Atomic uint64_t gba_ompi_word_t;
#endif

/* The words that one member writes; `word` and `released` are libgba's. */
typedef struct gba_ompi_words_t {
  alignas(64) gba_ompi_word_t word[2];
  gba_ompi_word_t released;
  gba_ompi_word_t left; /* 1: this member has stopped using the board */
} gba_ompi_words_t;

/* The node as a whole. `pull`: the last barrier that is to be completed by words, libgba's alarm. remote[k & 1] =
 * k << 2 | votes, written by the leader: the members of all other nodes have arrived at k. */
typedef struct gba_ompi_node_t {
  alignas(64) gba_ompi_word_t pull;
  gba_ompi_word_t remote[2];
} gba_ompi_node_t;

typedef struct gba_ompi_board_t {
  gba_ompi_node_t* node;
  gba_ompi_words_t* members; /* [locals] */
  uint32_t locals;
  int fd; /* on the maker, until it is sealed; else -1 */
} gba_ompi_board_t;

/* Identifies a board to other processes. Plain bytes. */
typedef struct gba_ompi_board_name_t {
  int32_t pid;
  int32_t fd;
  uint64_t inode; /* proves that the file is this one */
} gba_ompi_board_name_t;

/* A board for `locals` members; all words are 0. Errors, negative errno: -EINVAL no members; those of memfd_create,
 * ftruncate and mmap. Then the board is empty, and may be closed. */
int gba_ompi_board_make(uint32_t locals, gba_ompi_board_t* board, gba_ompi_board_name_t* name);
/* Opens another member's board. Errors: -EINVAL no members; -ESTALE the file is not that board; those of open (-ENOENT:
 * its maker has ended; -EACCES: another user's) and mmap. Then the board is empty, and may be closed. */
int gba_ompi_board_open(const gba_ompi_board_name_t* name, uint32_t locals, gba_ompi_board_t* board);
/* On the maker, when all have opened it: no process can open it any more. */
void gba_ompi_board_seal(gba_ompi_board_t* board);
/* Makes it empty. The memory stays until the last process closes it. */
void gba_ompi_board_close(gba_ompi_board_t* board);

/* How a barrier reaches the leaders of other nodes. */
typedef struct gba_ompi_remote_t {
  void* context;
  uint32_t nodes; /* other nodes; 0: all members are on this node */
  /* Sends to the leaders of all other nodes that all members of this node have arrived at k with these votes. Called on
   * the leader, once for each k and in order, from within any function here; must not call back. */
  void (*send)(void* context, uint64_t k, uint64_t votes);
} gba_ompi_remote_t;

/* What a leader has received about one barrier. */
typedef struct gba_ompi_received_t {
  uint64_t k;
  uint64_t votes;
  uint32_t nodes; /* that have sent it */
} gba_ompi_received_t;

/* A member's place on the node and in the device's group. */
typedef struct gba_ompi_place_t {
  uint32_t local;          /* its place on the board; 0: the leader of the node */
  uint32_t holder;         /* the place of the member whose port it uses: its own if it holds one */
  const uint32_t* sharers; /* of a holder: the places of those that share its port; they must stay there */
  uint32_t sharer_count;
  gba_barrier_port* port; /* of a holder */
  uint32_t ports;         /* of all members: the size of the device's group */
  uint32_t port_number;   /* of a holder: which of them */
} gba_ompi_place_t;

typedef struct gba_ompi_barrier_t {
  gba_barrier* lossless;
  gba_ompi_board_t* board;
  uint32_t local;
  gba_ompi_remote_t remote;
  uint64_t k; /* the barrier that is open, or the last one */
  bool open;
  bool over;        /* all members continue without the device: the next barrier is another module's */
  uint64_t sent[2]; /* leader: the last barriers sent to other nodes, by k & 1 */
  gba_ompi_received_t received[2];
  uint64_t by_device, by_words; /* how barriers were completed */
} gba_ompi_barrier_t;

/* Errors: -ENOMEM; the barrier is empty then. The board must stay until gba_ompi_barrier_end. */
int gba_ompi_barrier_make(gba_ompi_barrier_t* barrier, gba_ompi_board_t* board, const gba_ompi_place_t* place,
                          const gba_ompi_remote_t* remote);
/* Leaves the group and frees it, if this member owns it. Of an empty one: nothing. */
void gba_ompi_barrier_end(gba_ompi_barrier_t* barrier);
/* All members have joined the group of this handle (gba_barrier_offer, gba_barrier_join). */
void gba_ompi_barrier_begin(gba_ompi_barrier_t* barrier, uint64_t sequence);

/* Arrives at the next one. REQUIRES: none is open, !over. */
void gba_ompi_barrier_start(gba_ompi_barrier_t* barrier);
/* 0: done, or none is open; look at `over` then. -EAGAIN: not yet. No errors: a barrier is always completed somehow, as
 * long as all members arrive. */
int gba_ompi_barrier_test(gba_ompi_barrier_t* barrier);
/* As gba_barrier_poll. */
int gba_ompi_barrier_poll(gba_ompi_barrier_t* barrier);
/* As gba_barrier_sleep. */
int gba_ompi_barrier_sleep(gba_ompi_barrier_t* barrier, uint64_t max_ns);
/* Leader, whether or not a barrier is open, and after the last one until all other nodes have left: answers other
 * nodes. Costs one load if no node has asked. */
void gba_ompi_barrier_progress(gba_ompi_barrier_t* barrier);
/* Leader: a message of another node's leader about k. Each leader sends one for each barrier; in any order. */
void gba_ompi_barrier_receive(gba_ompi_barrier_t* barrier, uint64_t k, uint64_t votes);
/* The status, and the reason why this member does not use the device. */
gba_barrier_status gba_ompi_barrier_status(const gba_ompi_barrier_t* barrier);

#ifdef __cplusplus
}
#endif

#endif
