/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scoll/gba: the barriers of Open MPI's OpenSHMEM (shmem_barrier_all, shmem_barrier, shmem_sync_all, shmem_sync) by the
 * Global Barrier Accelerator. All of them are scoll_barrier of a group of PEs, after shmem_quiet where puts have to be
 * complete, which liboshmem itself calls before.
 *
 * The members of a group agree on the device in the group's first barrier, by messages on oshmem_comm_world with tags
 * that are the group's own: all of them are there, and each may block. With SHMEM_THREAD_MULTIPLE several groups may be
 * at it at the same time, on each PE in another order. A group is cached by liboshmem until shmem_finalize.
 */
#ifndef MCA_SCOLL_GBA_H
#define MCA_SCOLL_GBA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "oshmem_config.h"

#include "gba_far.h"
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
  opal_mutex_t lock;   /* for `listening` and the port's opening */
  bool listening;      /* opal_progress answers other nodes */
  atomic_flag running; /* one thread, and once, does so */
  gba_ompi_far_channel_t channel;
  bool port_tried;
  int port_error;
  gba_ompi_port_t port;
  bool is_process; /* the device; of a shared port it is not known, and not needed */
} mca_scoll_gba_component_t;
OMPI_MODULE_DECLSPEC extern mca_scoll_gba_component_t mca_scoll_gba_component;

/* scoll_gba_module.c */
mca_scoll_base_module_t* mca_scoll_gba_query(oshmem_group_t* group, int* priority);
/* Begins the agreement of all members. REQUIRES: the lock. */
void mca_scoll_gba_begin(mca_scoll_gba_module_t* module, const oshmem_group_t* group);
/* Says what has come of it. REQUIRES: the lock. */
void mca_scoll_gba_say(const gba_ompi_setup_t* setup, const oshmem_group_t* group);

/* scoll_gba_barrier.c */
int mca_scoll_gba_barrier(oshmem_group_t* group, long* pSync, int algorithm);

/* scoll_gba_progress.c: answers other nodes from now on, until nobody needs that any more. Nothing to do if all members
 * of all groups are on this node. */
void mca_scoll_gba_listen(void);
/* When all groups are gone: waits until no other node needs an answer. */
void mca_scoll_gba_stop_listening(void);

#endif
