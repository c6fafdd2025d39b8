/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_wait.h"
#include "opal/util/output.h"
#include "oshmem/runtime/runtime.h"
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

/* Ends the job: who calls barriers of OpenSHMEM is told of no error, and would go on without one. REQUIRES: the lock.
 */
static int end_job(const oshmem_group_t* group, const gba_ompi_setup_t* setup) {
  char pes[256];
  gba_ompi_missing_text(setup, pes, sizeof pes);
  opal_output(0,
              "scoll:gba: a barrier of the %d PEs from PE %d on has taken %d s (scoll_gba_timeout); PEs that have not "
              "come:%s",
              group->proc_count, (int)group->proc_vpids[0], mca_scoll_gba_component.options.timeout, pes);
  oshmem_shmem_abort(1);
  return OSHMEM_ERR_TIMEOUT;
}

/* Blocks until all members have agreed on who does the group's barriers. */
static int agree(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  gba_ompi_setup_t* const setup = module->setup;
  const uint64_t since = gba_ompi_now();
  mca_scoll_gba_begin(module, group);
  while (gba_ompi_setup_progress(setup) != 0) {
    if (gba_ompi_is_late(setup, &mca_scoll_gba_component.options, since)) return end_job(group, setup);
    gba_ompi_give_way(setup);
  }
  mca_scoll_gba_listen();
  mca_scoll_gba_say(setup, group);
  return OSHMEM_SUCCESS;
}

static int barrier_of_device(const oshmem_group_t* group, gba_ompi_setup_t* setup) {
  gba_ompi_options_t* const options = &mca_scoll_gba_component.options;
  if (gba_ompi_wait(setup, options, mca_scoll_gba_component.is_process) != 0) return end_job(group, setup);
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
  int status = module->begun ? OSHMEM_SUCCESS : agree(module, group);
  const bool used = setup->decision.reason == GBA_OMPI_USED && !setup->barrier.over;
  if (status == OSHMEM_SUCCESS && used) status = barrier_of_device(group, setup);
  OPAL_THREAD_UNLOCK(&setup->lock);
  if (status != OSHMEM_SUCCESS || used) return status;
  return barrier_of_previous(group, module, pSync, algorithm);
}
