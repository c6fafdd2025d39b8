/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of one communicator (or group) on one node know of each other: memory that they share. It is an
 * unnamed file (memfd) of one of them, which the others open by /proc/PID/fd/FD: nothing is left behind by a crash.
 */
#ifndef GBA_OMPI_BOARD_H
#define GBA_OMPI_BOARD_H

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> gba_ompi_word_t; /* the same in memory; unit tests are C++ */
extern "C" {
#else
#include <stdalign.h>
#include <stdatomic.h>
typedef _Atomic uint64_t gba_ompi_word_t;
#endif

/* Votes of uapi rule 25. */
enum { GBA_OMPI_ON = 0, GBA_OMPI_OFF = 1 };

/* One member, who alone writes them. word[k & 1] = k << 2 | vote: it has arrived at barrier k. `released`: the last
 * barrier that the device has released it from, for those who share its port. */
typedef struct gba_ompi_words_t {
  alignas(64) gba_ompi_word_t word[2];
  gba_ompi_word_t released;
  gba_ompi_word_t left; /* 1: this member does not use the board any more */
} gba_ompi_words_t;

/* The node as a whole. `pull`: the last barrier that is to be finished by words, whoever found that out. far[k & 1] =
 * k << 2 | votes, written by the leader: the members of all other nodes have arrived at k. */
typedef struct gba_ompi_node_t {
  alignas(64) gba_ompi_word_t pull;
  gba_ompi_word_t far[2];
} gba_ompi_node_t;

typedef struct gba_ompi_board_t {
  gba_ompi_node_t* node;
  gba_ompi_words_t* members; /* [locals] */
  uint32_t locals;
  int fd; /* of the one who made it, until it is sealed; else -1 */
} gba_ompi_board_t;

/* How others find a board. Plain bytes. */
typedef struct gba_ompi_board_name_t {
  int32_t pid;
  int32_t fd;
  uint64_t inode; /* that the file really is this one */
} gba_ompi_board_name_t;

/* A board for `locals` members; all words are 0. Errors, negative errno: -EINVAL no members; those of memfd_create,
 * ftruncate and mmap. Then the board is empty, and may be closed. */
int gba_ompi_board_make(uint32_t locals, gba_ompi_board_t* board, gba_ompi_board_name_t* name);
/* Another member's. Errors: -EINVAL no members; -ESTALE what is found there is not that board; those of open (-ENOENT:
 * its maker has ended; -EACCES: it is another user's) and mmap. Then the board is empty, and may be closed. */
int gba_ompi_board_open(const gba_ompi_board_name_t* name, uint32_t locals, gba_ompi_board_t* board);
/* The maker, when all have opened it: nobody else can any more. */
void gba_ompi_board_seal(gba_ompi_board_t* board);
/* Makes it empty. The memory is there for the others until the last one closes it. */
void gba_ompi_board_close(gba_ompi_board_t* board);

#ifdef __cplusplus
}
#endif

#endif
