/* SPDX-License-Identifier: Apache-2.0 */
/* coll/gba: MPI_Barrier and MPI_Ibarrier by the Global Barrier Accelerator. What it does and why: openmpi/README.md. */
#ifndef MCA_COLL_GBA_H
#define MCA_COLL_GBA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ompi_config.h"

#include "gba_options.h"
#include "gba_port.h"
#include "gba_setup.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"
#include "opal/class/opal_list.h"

/* Who does the barriers of a communicator. It changes from one to the next only, never back. */
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
  gba_ompi_setup_t* setup; /* its lock is for all that follows; not held while other modules, or opal_progress, run */
  mca_coll_gba_server_t server;
  mca_coll_gba_link_t link;
  bool active;     /* on the component's list, or just being looked at; then it holds a reference to the communicator */
  bool serving;    /* the open barrier of the device is that of the first request */
  bool abandoned;  /* the open barrier's call has given up: the next one takes the same barrier up again */
  uint64_t looked; /* serving: when a lost doorbell or release was looked for, or at the beginning; gba_ompi_now() */
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
  gba_ompi_options_t options;
  bool opened;
  opal_mutex_t lock;   /* for `active`, `listening`, and the port's opening; nothing else is called with it held */
  opal_list_t active;  /* modules with something under way */
  bool listening;      /* opal_progress calls mca_coll_gba_progress */
  atomic_flag running; /* one thread, and once, is in mca_coll_gba_progress */
  bool port_tried;
  int port_error;
  gba_ompi_port_t port;
  gba_ompi_far_channel_t channel;
  bool is_process; /* the device; of a shared port it is not known, and not needed */
} mca_coll_gba_component_t;
OMPI_MODULE_DECLSPEC extern mca_coll_gba_component_t mca_coll_gba_component;

/* coll_gba_query.c. `tell`: before the modex of MPI_Init. */
void mca_coll_gba_tell(void);
int mca_coll_gba_init_query(bool enable_progress_threads, bool enable_mpi_threads);
mca_coll_base_module_t* mca_coll_gba_comm_query(ompi_communicator_t* comm, int* priority);

/* coll_gba_module.c */
int mca_coll_gba_enable(mca_coll_base_module_t* module, ompi_communicator_t* comm);
/* Drives the agreement; says once what has come of it. REQUIRES: the lock. */
void mca_coll_gba_settle(mca_coll_gba_module_t* module);
/* From now on the communicator calls the previous module itself. REQUIRES: the lock, and to be called by MPI_Barrier on
 * this communicator, so that nobody else calls its barriers. */
void mca_coll_gba_step_aside(mca_coll_gba_module_t* module);

/* coll_gba_barrier.c, coll_gba_ibarrier.c */
int mca_coll_gba_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_gba_ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* module);
/* How the barrier that is just over was done. REQUIRES: the lock. */
void mca_coll_gba_count(mca_coll_gba_module_t* module);
/* Says that a barrier has taken too long, and who is missing. REQUIRES: the lock. */
void mca_coll_gba_complain(const mca_coll_gba_module_t* module);
/* Goes on with the requests. Gives how many have ended; they are on `ended`, to be completed without the lock.
 * REQUIRES: the lock. */
int mca_coll_gba_serve(mca_coll_gba_module_t* module, opal_list_t* ended);
void mca_coll_gba_complete(opal_list_t* ended);

/* coll_gba_software.c. 0: all have arrived. -EAGAIN: not yet. -EIO: a message has failed. */
int mca_coll_gba_software(mca_coll_gba_software_t* software, ompi_communicator_t* comm);

/* coll_gba_progress.c: has mca_coll_gba_progress come by until nothing is under way any more. REQUIRES: the lock. */
void mca_coll_gba_activate(mca_coll_gba_module_t* module);
/* Nobody else knows the module any more. */
void mca_coll_gba_forget(mca_coll_gba_module_t* module);
int mca_coll_gba_progress(void);

#endif
