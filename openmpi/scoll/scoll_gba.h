/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scoll/gba: the barriers of Open MPI's OpenSHMEM (shmem_barrier_all, shmem_barrier, shmem_sync_all, shmem_sync) by the
 * Global Barrier Accelerator. All of them are scoll_barrier of a group of PEs, after shmem_quiet where puts have to be
 * complete, which liboshmem itself calls before.
 *
 * The members of a group agree on the device in the group's first barrier, by messages on oshmem_comm_world with tags
 * of their own: all of them are there, and each may block. A group is cached by liboshmem until shmem_finalize.
 * Members on several nodes are left to the previous module, as are active sets of programs with SHMEM_THREAD_MULTIPLE,
 * whose first barriers may come in a different order on each PE.
 */
#ifndef MCA_SCOLL_GBA_H
#define MCA_SCOLL_GBA_H

#include <stdbool.h>

#include "oshmem_config.h"

#include "gba_options.h"
#include "gba_port.h"
#include "gba_setup.h"
#include "opal/threads/mutex.h"
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
  gba_ompi_options_t options;
  bool opened;
  opal_mutex_t lock; /* for the port's opening */
  bool port_tried;
  int port_error;
  gba_ompi_port_t port;
  bool is_process; /* the device; of a shared port it is not known, and not needed */
} mca_scoll_gba_component_t;
OMPI_MODULE_DECLSPEC extern mca_scoll_gba_component_t mca_scoll_gba_component;

/* scoll_gba_module.c */
mca_scoll_base_module_t* mca_scoll_gba_query(oshmem_group_t* group, int* priority);
/* Blocks until all members have agreed. REQUIRES: the lock. */
void mca_scoll_gba_agree(mca_scoll_gba_module_t* module, const oshmem_group_t* group);

/* scoll_gba_barrier.c */
int mca_scoll_gba_barrier(oshmem_group_t* group, long* pSync, int algorithm);

#endif
