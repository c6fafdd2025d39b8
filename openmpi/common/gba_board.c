/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */  // NOLINT(bugprone-reserved-identifier)
#include "gba_board.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(sizeof(gba_ompi_node_t) == 64 && sizeof(gba_ompi_words_t) == 64, "a cache line each");

/* So that no process can shorten it while others use it; and few other files have these seals. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static size_t bytes_of(uint32_t locals) {
  return sizeof(gba_ompi_node_t) + locals * sizeof(gba_ompi_words_t);
}

static void make_empty(gba_ompi_board_t* board) {
  *board = (gba_ompi_board_t){.node = NULL, .members = NULL, .locals = 0, .fd = -1};
}

static int map(int fd, uint32_t locals, gba_ompi_board_t* board) {
  void* const memory = mmap(NULL, bytes_of(locals), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return -errno;
  }
  board->node = memory;
  board->members = (gba_ompi_words_t*)(board->node + 1);
  board->locals = locals;
  return 0;
}

static int make_in(int fd, uint32_t locals, gba_ompi_board_t* board, gba_ompi_board_name_t* name) {
  struct stat file;
  if (ftruncate(fd, (off_t)bytes_of(locals)) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0 || fstat(fd, &file) != 0) {
    return -errno;
  }
  *name = (gba_ompi_board_name_t){.pid = getpid(), .fd = fd, .inode = file.st_ino};
  return map(fd, locals, board);
}

int gba_ompi_board_make(uint32_t locals, gba_ompi_board_t* board, gba_ompi_board_name_t* name) {
  make_empty(board);
  if (locals == 0) {
    return -EINVAL;
  }
  const int fd = memfd_create("gba-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return -errno;
  }
  const int error = make_in(fd, locals, board, name);
  if (error != 0) {
    close(fd);
    return error;
  }
  board->fd = fd;
  return 0;
}

static int open_in(int fd, const gba_ompi_board_name_t* name, uint32_t locals, gba_ompi_board_t* board) {
  struct stat file;
  if (fstat(fd, &file) != 0) {
    return -errno;
  }
  if (file.st_ino != name->inode || file.st_size != (off_t)bytes_of(locals) || fcntl(fd, F_GET_SEALS) != SEALS) {
    return -ESTALE;
  }
  return map(fd, locals, board);
}

int gba_ompi_board_open(const gba_ompi_board_name_t* name, uint32_t locals, gba_ompi_board_t* board) {
  make_empty(board);
  if (locals == 0) {
    return -EINVAL;
  }
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)name->pid, (int)name->fd);
  /* Not blocking: what is there may be anything, a FIFO too, if the number has come to mean another process. */
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return -errno;
  }
  const int error = open_in(fd, name, locals, board);
  close(fd);
  return error;
}

void gba_ompi_board_seal(gba_ompi_board_t* board) {
  if (board->fd >= 0) {
    close(board->fd);
    board->fd = -1;
  }
}

void gba_ompi_board_close(gba_ompi_board_t* board) {
  gba_ompi_board_seal(board);
  if (board->node != NULL) {
    munmap(board->node, bytes_of(board->locals));
  }
  make_empty(board);
}

int gba_ompi_barrier_make(gba_ompi_barrier_t* barrier, gba_ompi_board_t* board, const gba_ompi_place_t* place,
                          const gba_ompi_remote_t* remote) {
  *barrier = (gba_ompi_barrier_t){.board = board, .local = place->local, .remote = *remote};
  /* The same in memory: gba/barrier.h is for languages without _Atomic, too. */
  uint64_t* const words = (uint64_t*)board->members[0].word;
  const gba_barrier_config config = {.size = sizeof(config),
                                     .members = board->locals,
                                     .member = place->local,
                                     .group_members = place->ports,
                                     .group_member = place->port_number,
                                     .word = (uint64_t*)board->members[place->local].word,
                                     .words = words,
                                     .stride = sizeof(gba_ompi_words_t),
                                     .elsewhere = remote->nodes > 0 ? (const uint64_t*)board->node->remote : NULL,
                                     .alarm = (uint64_t*)&board->node->pull,
                                     .port = place->port,
                                     .released = (uint64_t*)&board->members[place->holder].released,
                                     .sharers = place->sharers,
                                     .sharer_count = place->sharer_count};
  return gba_barrier_create(&config, &barrier->lossless);
}

void gba_ompi_barrier_end(gba_ompi_barrier_t* barrier) {
  gba_barrier_destroy(barrier->lossless);
  barrier->lossless = NULL;
}

void gba_ompi_barrier_begin(gba_ompi_barrier_t* barrier, uint64_t sequence) {
  barrier->k = sequence;
  gba_barrier_begin(barrier->lossless, sequence);
}

void gba_ompi_barrier_start(gba_ompi_barrier_t* barrier) {
  barrier->k += 1;
  barrier->open = true;
  gba_barrier_arrive(barrier->lossless, barrier->k);
}

/* Never an error: words are mapped, and nothing ends a wait. */
static int finish(gba_ompi_barrier_t* barrier, int result) {
  if (result < 0) {
    return -EAGAIN;
  }
  barrier->open = false;
  if (result == GBA_BARRIER_RELEASED) {
    barrier->by_device += 1;
  } else {
    barrier->by_words += 1;
    barrier->over = gba_barrier_uses_device(barrier->lossless) == 0;
  }
  return 0;
}

int gba_ompi_barrier_test(gba_ompi_barrier_t* barrier) {
  gba_ompi_barrier_progress(barrier); /* before this member leaves it: other nodes may have asked */
  return barrier->open ? finish(barrier, gba_barrier_test(barrier->lossless)) : 0;
}

int gba_ompi_barrier_poll(gba_ompi_barrier_t* barrier) {
  gba_ompi_barrier_progress(barrier);
  return barrier->open ? finish(barrier, gba_barrier_poll(barrier->lossless)) : 0;
}

int gba_ompi_barrier_sleep(gba_ompi_barrier_t* barrier, uint64_t max_ns) {
  gba_ompi_barrier_progress(barrier);
  return barrier->open ? finish(barrier, gba_barrier_sleep(barrier->lossless, max_ns)) : 0;
}

/* All members of this node have arrived at k. `votes` are added to. */
static bool all_here(const gba_ompi_barrier_t* barrier, uint64_t k, uint64_t* votes) {
  for (uint32_t local = 0; local < barrier->board->locals; ++local) {
    /* Acquire, pairs with the release of words in libgba: what the member stored before it arrived is handed on. */
    const uint64_t word = atomic_load_explicit(&barrier->board->members[local].word[k & 1], memory_order_acquire);
    if (word >> 2 != k) {
      return false;
    }
    *votes |= word & 3;
  }
  return true;
}

void gba_ompi_barrier_progress(gba_ompi_barrier_t* barrier) {
  if (barrier->local != 0 || barrier->remote.nodes == 0) {
    return;
  }
  /* Relaxed, here and in receive(): it only says that words have to be read, which are acquired by themselves. */
  const uint64_t asked = atomic_load_explicit(&barrier->board->node->pull, memory_order_relaxed);
  if (asked == 0 || asked + 1 < barrier->k) {
    return;
  }
  /* The barrier before, too: this member may have been released from it while others were not. No node needs an older
   * one, since all have arrived at this one's predecessor. */
  for (uint64_t k = barrier->k > 1 ? barrier->k - 1 : 1; k <= barrier->k && k <= asked; ++k) {
    uint64_t votes = 0;
    if (barrier->sent[k & 1] < k && all_here(barrier, k, &votes)) {
      barrier->sent[k & 1] = k;
      barrier->remote.send(barrier->remote.context, k, votes);
    }
  }
}

void gba_ompi_barrier_receive(gba_ompi_barrier_t* barrier, uint64_t k, uint64_t votes) {
  gba_ompi_received_t* const received = &barrier->received[k & 1];
  gba_ompi_node_t* const node = barrier->board->node;
  if (received->k < k) {
    *received = (gba_ompi_received_t){.k = k};
  }
  /* No node needs a message that arrives after its second successor: all have arrived at the barrier in between. */
  if (received->k == k) {
    received->votes |= votes;
    received->nodes += 1;
    if (received->nodes == barrier->remote.nodes) {
      /* Release, pairs with the acquire of words in libgba. */
      atomic_store_explicit(&node->remote[k & 1], k << 2 | received->votes, memory_order_release);
    }
  }
  uint64_t last = atomic_load_explicit(&node->pull, memory_order_relaxed);
  while (last < k &&
         !atomic_compare_exchange_weak_explicit(&node->pull, &last, k, memory_order_relaxed, memory_order_relaxed)) {
  }
}

gba_barrier_status gba_ompi_barrier_status(const gba_ompi_barrier_t* barrier) {
  gba_barrier_status status = {.trouble = ""};
  (void)gba_barrier_get_status(barrier->lossless, &status);
  return status;
}
