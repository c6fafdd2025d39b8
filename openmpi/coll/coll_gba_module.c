/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the device might serve a communicator, from facts that all members know alike: its kind, its size, and what
 * each process has published at MPI_Init (the modex). If no process can have a device, nothing is exchanged later, and
 * the previous module's functions stay in place.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_gba.h"

#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "opal/util/output.h"

static int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm);
#if GBA_OMPI_MODULES_INSTALL
static int disable(mca_coll_base_module_t* base, ompi_communicator_t* comm);
#endif

static void construct(mca_coll_gba_module_t* module) {
  memset((char*)module + sizeof module->super, 0, sizeof *module - sizeof module->super);
  OBJ_CONSTRUCT(&module->requests, opal_list_t);
  OBJ_CONSTRUCT(&module->link.super, opal_list_item_t);
  module->link.module = module;
  module->super.coll_module_enable = enable;
#if GBA_OMPI_MODULES_INSTALL
  module->super.coll_module_disable = disable;
#endif
  module->super.coll_barrier = mca_coll_gba_barrier;
  module->super.coll_ibarrier = mca_coll_gba_ibarrier;
}

static void destruct(mca_coll_gba_module_t* module) {
  mca_coll_gba_deactivate(module);
  gba_ompi_setup_free(module->setup);
  if (module->barrier_module != NULL) {
    OBJ_RELEASE(module->barrier_module);
  }
  if (module->ibarrier_module != NULL) {
    OBJ_RELEASE(module->ibarrier_module);
  }
  OBJ_DESTRUCT(&module->link.super);
  OBJ_DESTRUCT(&module->requests);
}

OBJ_CLASS_INSTANCE(mca_coll_gba_module_t, mca_coll_base_module_t, construct, destruct);

/* Sends nothing and asks the device for nothing, since most communicators make few barriers or none. */
static int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  if (comm->c_coll->coll_barrier == NULL || comm->c_coll->coll_ibarrier == NULL) {
    return OMPI_ERR_NOT_AVAILABLE;
  }
  module->setup = gba_ompi_setup_new();
  if (module->setup == NULL) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  module->barrier = comm->c_coll->coll_barrier;
  module->barrier_module = comm->c_coll->coll_barrier_module;
  module->ibarrier = comm->c_coll->coll_ibarrier;
  module->ibarrier_module = comm->c_coll->coll_ibarrier_module;
  OBJ_RETAIN(module->barrier_module);
  OBJ_RETAIN(module->ibarrier_module);
#if GBA_OMPI_MODULES_INSTALL
  MCA_COLL_INSTALL_API(comm, barrier, mca_coll_gba_barrier, base, "gba");
  MCA_COLL_INSTALL_API(comm, ibarrier, mca_coll_gba_ibarrier, base, "gba");
#endif
  return OMPI_SUCCESS;
}

/* `put_back` takes over the reference that a function of the communicator has to its module, if it counts these. */
static void exchange_references(mca_coll_gba_module_t* module, mca_coll_base_module_t* put_back) {
#if GBA_OMPI_MODULES_INSTALL
  (void)module;
  (void)put_back;
#else
  OBJ_RETAIN(put_back);
  OBJ_RELEASE(module); /* the communicator's list of modules keeps it */
#endif
}

void mca_coll_gba_put_back(mca_coll_gba_module_t* module, ompi_communicator_t* comm) {
  mca_coll_base_comm_coll_t* const calls = comm->c_coll;
  if (calls->coll_barrier_module == &module->super) {
    calls->coll_barrier = module->barrier;
    calls->coll_barrier_module = module->barrier_module;
    exchange_references(module, module->barrier_module);
  }
  if (calls->coll_ibarrier_module == &module->super) {
    calls->coll_ibarrier = module->ibarrier;
    calls->coll_ibarrier_module = module->ibarrier_module;
    exchange_references(module, module->ibarrier_module);
  }
}

#if GBA_OMPI_MODULES_INSTALL
static int disable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  mca_coll_gba_put_back((mca_coll_gba_module_t*)base, comm);
  return OMPI_SUCCESS;
}
#endif

void mca_coll_gba_begin(mca_coll_gba_module_t* module) {
  gba_ompi_component_t* const common = &mca_coll_gba_component.common;
  ompi_communicator_t* const comm = module->comm;
  const int error = gba_ompi_component_open_port(common);
  const gba_ompi_team_t team = {.comm = comm,
                                .ranks = NULL,
                                .members = ompi_comm_size(comm),
                                .self = ompi_comm_rank(comm),
                                .up = GBA_OMPI_TAG_UP,
                                .down = GBA_OMPI_TAG_DOWN};
  module->begun = true;
  gba_ompi_setup_begin(module->setup, &team, &common->port, error, &common->channel);
  mca_coll_gba_activate(module);
}

/* What a process publishes. A process that has no component, or disables it, publishes nothing. */
typedef struct published_t {
  uint32_t version;  /* of the agreement that follows */
  uint32_t prospect; /* 1: there may be a device */
  uint32_t min_size;
  uint32_t early; /* barriers */
} published_t;

enum { AGREEMENT = 2 };

static published_t own;

/* What the processes of this job have published, by rank of MPI_COMM_WORLD. A lookup goes to another thread and
 * back, and so is made once for each process, not for each communicator. REQUIRES: the component's lock. */
typedef struct known_t {
  bool is_known;
  published_t published;
} known_t;
static known_t* known;

static uint32_t has_prospect(const gba_ompi_component_t* common) {
  const char* const named = getenv("GBA_DEVICE");
  uint32_t count = 0;
  if (gba_ompi_component_path(common) != NULL || (named != NULL && named[0] != '\0')) {
    return 1;
  }
  return access(GBA_OMPI_DEFAULT_NODE, F_OK) == 0 || (gba_list(NULL, 0, &count) == 0 && count > 0);
}

void mca_coll_gba_publish(void) {
  const gba_ompi_component_t* const common = &mca_coll_gba_component.common;
  /* Only barriers of the device have the limit. */
  const int early = common->options.timeout > 0 ? 0 : mca_coll_gba_component.early_barriers;
  own = (published_t){.version = AGREEMENT,
                      .prospect = has_prospect(common),
                      .min_size = (uint32_t)common->options.min_size,
                      .early = early > 0 ? (uint32_t)early : 0};
  int error = OMPI_SUCCESS;
  OPAL_MODEX_SEND(error, GBA_OMPI_MODEX_GLOBAL, &mca_coll_gba_component.super.collm_version, &own, sizeof own);
  (void)error; /* it has been logged; the others find nothing */
}

int mca_coll_gba_init_query(bool enable_progress_threads, bool enable_mpi_threads) {
  (void)enable_progress_threads;
  (void)enable_mpi_threads;
  return OMPI_SUCCESS;
}

static published_t look_up(ompi_proc_t* proc) {
  published_t published = {.version = 0};
  void* bytes = NULL;
  gba_ompi_modex_size_t size = 0;
  int error = OMPI_SUCCESS;
  OPAL_MODEX_RECV(error, &mca_coll_gba_component.super.collm_version, &proc->super.proc_name, &bytes, &size);
  if (error == OPAL_SUCCESS && (size_t)size == sizeof published) {
    memcpy(&published, bytes, sizeof published);
  }
  free(bytes);
  return published;
}

/* REQUIRES: a process of this job. */
static published_t published_by(ompi_proc_t* proc) {
  opal_mutex_t* const lock = &mca_coll_gba_component.common.lock;
  const uint32_t rank = proc->super.proc_name.vpid;
  known_t entry = {.is_known = false};
  if (proc == ompi_proc_local()) {
    return own;
  }
  OPAL_THREAD_LOCK(lock);
  if (known == NULL) {
    known = calloc(ompi_process_info.num_procs, sizeof *known);
  }
  if (known != NULL) {
    entry = known[rank];
  }
  OPAL_THREAD_UNLOCK(lock);
  if (entry.is_known) {
    return entry.published;
  }
  entry = (known_t){.is_known = true, .published = look_up(proc)};
  OPAL_THREAD_LOCK(lock);
  if (known != NULL) {
    known[rank] = entry;
  }
  OPAL_THREAD_UNLOCK(lock);
  return entry.published;
}

void mca_coll_gba_forget_published(void) {
  free(known);
  known = NULL;
}

/* NULL, or why not. `early`: of the members, the most. */
static const char* obstacle(ompi_communicator_t* comm, uint32_t* early) {
  const uint32_t size = (uint32_t)ompi_comm_size(comm);
  if (OMPI_COMM_IS_INTER(comm)) {
    return "it is an intercommunicator";
  }
  if (size < 2) {
    return "it has one member"; /* never printed: MPI_COMM_SELF */
  }
  if (size > GBA_GROUP_MASK_WORDS * 64 || size > 708) {
    return "it has more than 708 members";
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    ompi_proc_t* const proc = ompi_comm_peer_lookup(comm, (int)rank);
    if (proc->super.proc_name.jobid != OMPI_PROC_MY_NAME->jobid) {
      return "its members are of several jobs";
    }
    const published_t published = published_by(proc);
    if (published.version != AGREEMENT) {
      return "a member does not use the component";
    }
    if (!published.prospect) {
      return "a member has no device";
    }
    if (size < published.min_size) {
      return "it has fewer members than coll_gba_min_comm_size";
    }
    *early = published.early > *early ? published.early : *early;
  }
  return NULL;
}

mca_coll_base_module_t* mca_coll_gba_comm_query(ompi_communicator_t* comm, int* priority) {
  *priority = mca_coll_gba_component.common.options.priority;
  uint32_t early = 0;
  const char* const reason = obstacle(comm, &early);
  if (reason != NULL) {
    if (ompi_comm_rank(comm) == 0 && ompi_comm_size(comm) > 1) {
      opal_output_verbose(GBA_OMPI_VERBOSITY, mca_coll_gba_component.common.options.stream,
                          "coll:gba: communicator %s is not for the device: %s", comm->c_name, reason);
    }
    return NULL;
  }
  mca_coll_gba_module_t* const module = OBJ_NEW(mca_coll_gba_module_t);
  if (module == NULL) {
    return NULL;
  }
  module->comm = comm;
  module->early = (int)early;
  return &module->super;
}
