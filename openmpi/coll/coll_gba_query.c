/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a communicator is one that the device might serve, from facts that all members know alike: its kind, its
 * size, and what each process has told all others at MPI_Init (the modex). Where nobody can have a device nothing
 * is exchanged later, and the previous module's functions stay in place.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_gba.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"

/* What a process tells. One without the component, or that disables it, tells nothing. */
typedef struct told_t {
  uint32_t version;  /* of the agreement that follows */
  uint32_t prospect; /* 1: there may be a device */
  uint32_t min_size;
} told_t;

enum { AGREEMENT = 1 };

static told_t own;

static uint32_t has_prospect(const gba_ompi_options_t* options) {
  const char* const named = getenv("GBA_DEVICE");
  uint32_t count = 0;
  if (gba_ompi_options_path(options) != NULL || (named != NULL && named[0] != '\0')) return 1;
  return access("/dev/gba0", F_OK) == 0 || (gba_list(NULL, 0, &count) == 0 && count > 0);
}

void mca_coll_gba_tell(void) {
  const gba_ompi_options_t* const options = &mca_coll_gba_component.options;
  own = (told_t){.version = AGREEMENT, .prospect = has_prospect(options), .min_size = (uint32_t)options->min_size};
  int error = OMPI_SUCCESS;
  OPAL_MODEX_SEND(error, OPAL_PMIX_GLOBAL, &mca_coll_gba_component.super.collm_version, &own, sizeof own);
  (void)error; /* it has been logged, and the others will find nothing */
}

int mca_coll_gba_init_query(bool enable_progress_threads, bool enable_mpi_threads) {
  (void)enable_progress_threads;
  (void)enable_mpi_threads;
  return OMPI_SUCCESS;
}

static told_t told_by(ompi_proc_t* proc) {
  told_t told = {.version = 0};
  if (proc == ompi_proc_local()) return own;
  void* bytes = NULL;
  int32_t size = 0;
  int error = OMPI_SUCCESS;
  OPAL_MODEX_RECV(error, &mca_coll_gba_component.super.collm_version, &proc->super.proc_name, &bytes, &size);
  if (error == OPAL_SUCCESS && size == (int32_t)sizeof told) memcpy(&told, bytes, sizeof told);
  free(bytes);
  return told;
}

/* NULL, or why not. */
static const char* obstacle(ompi_communicator_t* comm) {
  const uint32_t size = (uint32_t)ompi_comm_size(comm);
  if (OMPI_COMM_IS_INTER(comm)) return "it is an intercommunicator";
  if (size < 2) return "it has one member"; /* nobody asks why MPI_COMM_SELF */
  if (size > GBA_GROUP_MASK_WORDS * 64 || size > 708) return "it has more than 708 members";
  for (uint32_t rank = 0; rank < size; ++rank) {
    ompi_proc_t* const proc = ompi_comm_peer_lookup(comm, (int)rank);
    if (proc->super.proc_name.jobid != OMPI_PROC_MY_NAME->jobid) return "its members are of several jobs";
    const told_t told = told_by(proc);
    if (told.version != AGREEMENT) return "a member does without the component";
    if (!told.prospect) return "a member has no device";
    if (size < told.min_size) return "it has fewer members than coll_gba_min_comm_size";
  }
  return NULL;
}

mca_coll_base_module_t* mca_coll_gba_comm_query(ompi_communicator_t* comm, int* priority) {
  *priority = mca_coll_gba_component.options.priority;
  const char* const reason = obstacle(comm);
  if (reason != NULL) {
    if (ompi_comm_rank(comm) == 0 && ompi_comm_size(comm) > 1) {
      opal_output_verbose(GBA_OMPI_SAY, mca_coll_gba_component.options.stream,
                          "coll:gba: communicator %s is not for the device: %s", comm->c_name, reason);
    }
    return NULL;
  }
  mca_coll_gba_module_t* const module = OBJ_NEW(mca_coll_gba_module_t);
  if (module == NULL) return NULL;
  module->comm = comm;
  return &module->super;
}
