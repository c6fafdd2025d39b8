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

/* Nobody can shorten it under the others' feet; and few other files have these seals. */
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
