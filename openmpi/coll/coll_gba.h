/* SPDX-License-Identifier: Apache-2.0 */
/* coll/gba: MPI_Barrier and MPI_Ibarrier by the Global Barrier Accelerator. What it does and why: openmpi/README.md. */
#ifndef MCA_COLL_GBA_H
#define MCA_COLL_GBA_H

#include <stdbool.h>
#include <stdint.h>

#include "ompi_config.h"

#include "gba_component.h"
#include "gba_setup.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"
#include "opal/class/opal_list.h"

/* What does the barriers of a communicator. It changes from one to the next only, never back. */
typedef enum mca_coll_gba_server_t {
  MCA_COLL_GBA_UNDECIDED,
  MCA_COLL_GBA_DEVICE,
  MCA_COLL_GBA_SOFTWARE, /* the previous module the blocking ones, coll_gba_software.c the others */
  MCA_COLL_GBA_PREVIOUS  /* the previous module, without any detour */
} mca_coll_gba_server_t;

/* A barrier by messages, for those MPI_Ibarriers that were called before it was known that the device does not do them:
 * handing them to the previous module then would upset the order of its tags. */
typedef struct mca_coll_gba_software_t {
  int distance;               /* of the round that is under way; 0: none */
  ompi_request_t* request[2]; /* of that round */
} mca_coll_gba_software_t;

struct mca_coll_gba_module_t;

/* A module on the component's list. */
typedef struct mca_coll_gba_link_t {
  opal_list_item_t super;
  struct mca_coll_gba_module_t* module;
} mca_coll_gba_link_t;

typedef struct mca_coll_gba_module_t {
  mca_coll_base_module_t super;
  ompi_communicator_t* comm;
  int early;  /* barriers that are left to the previous module; used by the thread that makes them, without a lock */
  bool begun; /* the agreement */
  gba_ompi_setup_t* setup; /* its lock is for all that follows; not held while other modules, or opal_progress, run */
  mca_coll_gba_server_t server;
  mca_coll_gba_link_t link;
  bool active;    /* on the component's list, or just being looked at; then it holds a reference to the communicator */
  bool serving;   /* the open barrier of the device is that of the first request */
  bool abandoned; /* the open barrier's call has given up: the next one takes the same barrier up again */
  mca_coll_gba_software_t software;
  opal_list_t requests; /* MPI_Ibarriers in the order of their calls */
  mca_coll_base_module_barrier_fn_t barrier;
  mca_coll_base_module_t* barrier_module;
  mca_coll_base_module_ibarrier_fn_t ibarrier;
  mca_coll_base_module_t* ibarrier_module;
} mca_coll_gba_module_t;
OBJ_CLASS_DECLARATION(mca_coll_gba_module_t);

typedef struct mca_coll_gba_component_t {
  mca_coll_base_component_t super;
  gba_ompi_component_t common; /* its lock is for `active`, too */
  int early_barriers;          /* the parameter */
  opal_list_t active;          /* modules with something under way */
} mca_coll_gba_component_t;
GBA_OMPI_EXPORTED extern mca_coll_gba_component_t mca_coll_gba_component;

/* coll_gba_module.c. `publish`: before the modex of MPI_Init. */
void mca_coll_gba_publish(void);
int mca_coll_gba_init_query(bool enable_progress_threads, bool enable_mpi_threads);
mca_coll_base_module_t* mca_coll_gba_comm_query(ompi_communicator_t* comm, int* priority);
/* Begins the agreement of all members, and does not wait. REQUIRES: the lock; all members call it at the same one of
 * their barriers. */
void mca_coll_gba_begin(mca_coll_gba_module_t* module);
/* The communicator calls the previous module itself, unless a module of a higher priority has put itself in front, and
 * calls this one. */
void mca_coll_gba_put_back(mca_coll_gba_module_t* module, ompi_communicator_t* comm);
/* At the end of the program. */
void mca_coll_gba_forget_published(void);

/* coll_gba_barrier.c */
int mca_coll_gba_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_gba_ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* module);
/* mca_coll_gba_progress serves the module until nothing is under way any more. REQUIRES: the lock. */
void mca_coll_gba_activate(mca_coll_gba_module_t* module);
/* Removes it from the list. REQUIRES: no other thread uses the module. */
void mca_coll_gba_deactivate(mca_coll_gba_module_t* module);
/* The callback of the progress engine. */
int mca_coll_gba_progress(void);

/* coll_gba_software.c. 0: all have arrived. -EAGAIN: not yet. -EIO: a message has failed. */
int mca_coll_gba_software(mca_coll_gba_software_t* software, ompi_communicator_t* comm);

#endif
