/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_port.h"

#include "gba_decide.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_PREFIX "vfio-user:"

static bool is_given(const char* text) {
  return text != NULL && text[0] != '\0';
}

/* Such a server gives each process a port. */
static bool is_socket(const char* path) {
  struct stat file;
  return path[0] == '@' || strncmp(path, SOCKET_PREFIX, strlen(SOCKET_PREFIX)) == 0 ||
         (stat(path, &file) == 0 && S_ISSOCK(file.st_mode));
}

static uint32_t count_paths(const char* paths) {
  uint32_t count = 1;
  for (const char* comma = strchr(paths, ','); comma != NULL; comma = strchr(comma + 1, ',')) {
    ++count;
  }
  return count;
}

/* REQUIRES: paths has more than `index`. */
static int take_path(const char* paths, uint32_t index, gba_ompi_port_t* port) {
  const char* first = paths;
  for (; index > 0; --index) {
    first = strchr(first, ',') + 1;
  }
  const size_t length = strcspn(first, ",");
  if (length == 0 || length >= sizeof(port->path)) {
    snprintf(port->trouble, sizeof(port->trouble), "the list of devices \"%.300s\" has a path that is %s", paths,
             length == 0 ? "empty" : "too long");
    return -EINVAL;
  }
  memcpy(port->path, first, length);
  port->path[length] = '\0';
  return 0;
}

/* A port of one of this machine's functions, in the order of their addresses. None: path stays "". */
static void take_function(uint32_t local_rank, gba_ompi_port_t* port) {
  uint32_t count = 0;
  if (gba_list(NULL, 0, &count) != 0 || count == 0) {
    return;
  }
  char(*const functions)[GBA_ADDRESS_SIZE] = calloc(count, sizeof(*functions));
  if (functions == NULL) {
    return;
  }
  const uint32_t room = count;
  if (gba_list(functions, room, &count) == 0 && count > 0) {
    port->holder = local_rank % (count < room ? count : room);
    snprintf(port->path, sizeof(port->path), "%s", functions[port->holder]);
  }
  free(functions);
}

static int choose(const char* paths, uint32_t local_rank, gba_ompi_port_t* port) {
  const char* const named = getenv("GBA_DEVICE");
  const char* list = is_given(paths) ? paths : named;
  if (!is_given(list) && access(GBA_OMPI_DEFAULT_NODE, F_OK) == 0) {
    list = GBA_OMPI_DEFAULT_NODE;
  }
  if (!is_given(list)) {
    take_function(local_rank, port);
    return 0;
  }
  const uint32_t index = local_rank % count_paths(list);
  const int error = take_path(list, index, port);
  if (error == 0) {
    port->holder = is_socket(port->path) ? local_rank : index;
  }
  return error;
}

int gba_ompi_port_open(const char* paths, uint32_t local_rank, gba_ompi_port_t* port) {
  memset(port, 0, sizeof(*port));
  int error = choose(paths, local_rank, port);
  if (error != 0 || port->holder != local_rank) {
    return error;
  }
  error = gba_barrier_port_open(port->path[0] != '\0' ? port->path : NULL, &port->port);
  if (error == -EBUSY && is_socket(port->path)) {
    port->holder = GBA_OMPI_ANY_HOLDER; /* more processes than ports: others may have one */
    return 0;
  }
  if (error != 0) {
    snprintf(port->trouble, sizeof(port->trouble), "%s", gba_error_text());
  }
  return error;
}

void gba_ompi_port_close(gba_ompi_port_t* port) {
  gba_barrier_port_close(port->port);
  port->port = NULL;
}
