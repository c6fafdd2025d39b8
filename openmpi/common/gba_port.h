/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function of the device this process opens, or whose it shares. A function has one opener; a server of
 * vfio-user gives a port to each of its connections.
 */
#ifndef GBA_OMPI_PORT_H
#define GBA_OMPI_PORT_H

#include <stdint.h>

#include "gba/barrier.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name that udev gives a machine's first GBA, and the service gba-fake-device its socket. */
#define GBA_OMPI_DEFAULT_NODE "/dev/gba0"

typedef struct gba_ompi_port_t {
  gba_barrier_port* port; /* NULL: none, or another process's is shared */
  uint32_t holder;        /* the local rank that has opened what this process uses; its own if it has opened it itself;
                           * GBA_OMPI_ANY_HOLDER: any that has a port */
  char path[256];         /* of the device; "": the first that libgba finds */
  char trouble[512];      /* why there is none; "": there is */
} gba_ompi_port_t;

/*
 * `paths` is a list with commas between, for libgba's gba_open: of m paths local rank i has path i mod m. If that is a
 * socket, or begins with "vfio-user:", it opens it; if it is anything else, local rank i < m opens it, and any other
 * shares that of local rank i mod m, which may turn out not to have it. A process that finds no port left at a socket
 * shares that of any other. Where `paths` is NULL or "" the list is $GBA_DEVICE, or else /dev/gba0, or else all
 * functions of this machine's GBAs.
 *
 * A second open in one process shares it with the first (gba_open). Thread-safe. 0, also for a process that shares.
 * Errors: those of gba_open; -EINVAL an empty path, or one that is too long. Then `port` is NULL, and
 * `trouble` says what was tried.
 */
int gba_ompi_port_open(const char* paths, uint32_t local_rank, gba_ompi_port_t* port);
/* Once for each open that gave 0. */
void gba_ompi_port_close(gba_ompi_port_t* port);

#ifdef __cplusplus
}
#endif

#endif
