/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scoll/gba: the barriers of Open MPI's OpenSHMEM (shmem_barrier_all, shmem_barrier, shmem_sync_all, shmem_sync) by the
 * Global Barrier Accelerator. Each is scoll_barrier of a group of PEs; liboshmem calls shmem_quiet before those that
 * complete puts.
 *
 * The members of a group agree on the device in the group's first barrier, by messages on oshmem_comm_world with the
 * group's own tags: all of them have called it, and each may block. With SHMEM_THREAD_MULTIPLE several groups may agree
 * at the same time, in a different order on each PE. A group is cached by liboshmem until shmem_finalize.
 */
#ifndef MCA_SCOLL_GBA_H
#define MCA_SCOLL_GBA_H

#include <stdbool.h>

#include "oshmem_config.h"

#include "gba_component.h"
#include "gba_setup.h"
#include "oshmem/mca/scoll/scoll.h"
#include "oshmem/proc/proc.h"

typedef struct mca_scoll_gba_module_t {
  mca_scoll_base_module_t super;
  gba_ompi_setup_t* setup; /* its lock is for all that follows */
  bool begun;
  int* ranks;              /* of the members, in oshmem_comm_world */
  gba_ompi_port_t refusal; /* stands for the port if this PE does not want one */
  mca_scoll_base_module_barrier_fn_t barrier;
  mca_scoll_base_module_t* barrier_module;
} mca_scoll_gba_module_t;
OBJ_CLASS_DECLARATION(mca_scoll_gba_module_t);

typedef struct mca_scoll_gba_component_t {
  mca_scoll_base_component_t super;
  gba_ompi_component_t common;
} mca_scoll_gba_component_t;
GBA_OMPI_EXPORTED extern mca_scoll_gba_component_t mca_scoll_gba_component;

/* scoll_gba_module.c */
mca_scoll_base_module_t* mca_scoll_gba_query(oshmem_group_t* group, int* priority);
/* Begins the agreement of all members. REQUIRES: the lock. */
void mca_scoll_gba_begin(mca_scoll_gba_module_t* module, const oshmem_group_t* group);

/* scoll_gba_barrier.c */
int mca_scoll_gba_barrier(oshmem_group_t* group, long* pSync, int algorithm);
/* Answers other nodes. Called by Open MPI's progress engine, from any thread that waits for anything, as long as there
 * is a group whose members are on several nodes. */
int mca_scoll_gba_progress(void);

#endif
