/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_gba.h"
#include "gba_wait.h"
#include "opal/util/output.h"

void mca_coll_gba_count(mca_coll_gba_module_t* module) {
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  gba_ompi_options_t* const options = &mca_coll_gba_component.options;
  gba_ompi_count(module->setup, options);
  if (barrier->over) {
    opal_output_verbose(GBA_OMPI_SAY, options->stream, "coll:gba: communicator %s, rank %d: no device any more: %s",
                        module->comm->c_name, module->setup->party.self, barrier->trouble);
  }
}

void mca_coll_gba_complain(const mca_coll_gba_module_t* module) {
  char ranks[256];
  gba_ompi_missing_text(module->setup, ranks, sizeof ranks);
  opal_output(0,
              "coll:gba: a barrier of communicator %s has taken %d s (coll_gba_timeout); ranks that have not come:%s",
              module->comm->c_name, mca_coll_gba_component.options.timeout, ranks);
}

/* Until it is known who does it, and those before it are over. MPI_Ibarriers give up for themselves. */
static int wait_for_turn(mca_coll_gba_module_t* module) {
  if (module->server != MCA_COLL_GBA_UNDECIDED && opal_list_is_empty(&module->requests)) return OMPI_SUCCESS;
  const uint64_t since = gba_ompi_now();
  while (module->server == MCA_COLL_GBA_UNDECIDED || !opal_list_is_empty(&module->requests)) {
    const bool undecided = module->server == MCA_COLL_GBA_UNDECIDED;
    if (undecided && gba_ompi_is_late(module->setup, &mca_coll_gba_component.options, since)) return MPI_ERR_OTHER;
    gba_ompi_give_way(module->setup);
  }
  return OMPI_SUCCESS;
}

static int barrier_of_device(mca_coll_gba_module_t* module) {
  module->abandoned = false;
  if (gba_ompi_wait(module->setup, &mca_coll_gba_component.options, mca_coll_gba_component.is_process) != 0) {
    module->abandoned = true;
    return MPI_ERR_OTHER;
  }
  mca_coll_gba_count(module);
  return OMPI_SUCCESS;
}

static int barrier_of_previous(mca_coll_gba_module_t* module) {
  mca_coll_base_module_barrier_fn_t const barrier = module->barrier;
  mca_coll_base_module_t* const previous = module->barrier_module;
  ompi_communicator_t* const comm = module->comm;
  __atomic_fetch_add(&mca_coll_gba_component.options.fallen_back, 1, __ATOMIC_RELAXED);
  /* MPI_Ibarriers may go that way from here on: all members come by here at the same place among their collectives, and
   * those that were called before are over. */
  if (module->server != MCA_COLL_GBA_PREVIOUS) mca_coll_gba_step_aside(module);
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return barrier(comm, previous);
}

int mca_coll_gba_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  (void)comm;
  OPAL_THREAD_LOCK(&module->setup->lock);
  int status = wait_for_turn(module);
  if (status == OMPI_SUCCESS) {
    if (module->server != MCA_COLL_GBA_DEVICE || module->setup->barrier.over) return barrier_of_previous(module);
    status = barrier_of_device(module);
  }
  if (status != OMPI_SUCCESS) mca_coll_gba_complain(module);
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return status;
}
