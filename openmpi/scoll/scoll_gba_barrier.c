/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_wait.h"
#include "opal/util/output.h"
#include "scoll_gba.h"

/* From now on the group calls the previous module itself. */
static void step_aside(oshmem_group_t* group, mca_scoll_gba_module_t* module) {
  group->g_scoll.scoll_barrier = module->barrier;
  group->g_scoll.scoll_barrier_module = module->barrier_module;
  OBJ_RETAIN(module->barrier_module);
  OBJ_RELEASE(module); /* that was the group's reference: it goes */
}

static int barrier_of_previous(oshmem_group_t* group, mca_scoll_gba_module_t* module, long* pSync, int algorithm) {
  mca_scoll_base_module_barrier_fn_t const barrier = module->barrier;
  mca_scoll_base_group_scoll_t* const calls = &group->g_scoll;
  __atomic_fetch_add(&mca_scoll_gba_component.options.fallen_back, 1, __ATOMIC_RELAXED);
  if (calls->scoll_barrier == mca_scoll_gba_barrier) {
    step_aside(group, module);
    return barrier(group, pSync, algorithm);
  }
  /* A module of a higher priority has put itself in front, and calls this one. A module finds itself by the group. */
  calls->scoll_barrier_module = module->barrier_module;
  const int status = barrier(group, pSync, algorithm);
  calls->scoll_barrier_module = &module->super;
  return status;
}

static int barrier_of_device(oshmem_group_t* group, gba_ompi_setup_t* setup) {
  gba_ompi_options_t* const options = &mca_scoll_gba_component.options;
  char pes[256];
  if (gba_ompi_wait(setup, options, mca_scoll_gba_component.is_process) != 0) {
    gba_ompi_missing_text(setup, pes, sizeof pes);
    opal_output(
        0,
        "scoll:gba: a barrier of the %d PEs from PE %d on has taken %d s (scoll_gba_timeout); PEs that have not "
        "come:%s",
        group->proc_count, (int)group->proc_vpids[0], options->timeout, pes);
    return OSHMEM_ERR_TIMEOUT;
  }
  if (setup->barrier.over) {
    opal_output_verbose(GBA_OMPI_SAY, options->stream,
                        "scoll:gba: the %d PEs from PE %d on, PE %d: no device any more: %s", group->proc_count,
                        (int)group->proc_vpids[0], group->my_pe, setup->barrier.trouble);
  }
  return OSHMEM_SUCCESS;
}

int mca_scoll_gba_barrier(oshmem_group_t* group, long* pSync, int algorithm) {
  mca_scoll_gba_module_t* const module = (mca_scoll_gba_module_t*)group->g_scoll.scoll_barrier_module;
  gba_ompi_setup_t* const setup = module->setup;
  OPAL_THREAD_LOCK(&setup->lock);
  if (!module->begun) mca_scoll_gba_agree(module, group);
  const bool used = setup->decision.reason == GBA_OMPI_USED && !setup->barrier.over;
  const int status = used ? barrier_of_device(group, setup) : OSHMEM_SUCCESS;
  OPAL_THREAD_UNLOCK(&setup->lock);
  return used ? status : barrier_of_previous(group, module, pSync, algorithm);
}
