/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "gba_wait.h"
#include "oshmem/runtime/runtime.h"
#include "scoll_gba.h"

/* From now on the group calls the previous module itself. */
static void restore_previous(oshmem_group_t* group, mca_scoll_gba_module_t* module) {
  group->g_scoll.scoll_barrier = module->barrier;
  group->g_scoll.scoll_barrier_module = module->barrier_module;
  OBJ_RETAIN(module->barrier_module);
  OBJ_RELEASE(module); /* that was the group's reference: it goes */
}

static int barrier_of_previous(oshmem_group_t* group, mca_scoll_gba_module_t* module, long* pSync, int algorithm) {
  mca_scoll_base_module_barrier_fn_t const barrier = module->barrier;
  mca_scoll_base_group_scoll_t* const calls = &group->g_scoll;
  __atomic_fetch_add(&mca_scoll_gba_component.common.options.fallen_back, 1, __ATOMIC_RELAXED);
  if (calls->scoll_barrier == mca_scoll_gba_barrier) {
    restore_previous(group, module);
    return barrier(group, pSync, algorithm);
  }
  /* A module of a higher priority has put itself in front, and calls this one. A module finds itself by the group. */
  calls->scoll_barrier_module = module->barrier_module;
  const int status = barrier(group, pSync, algorithm);
  calls->scoll_barrier_module = &module->super;
  return status;
}

typedef void (*report_t)(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name);

static void report(report_t message, const oshmem_group_t* group, const gba_ompi_setup_t* setup) {
  char name[64];
  snprintf(name, sizeof name, "the %d PEs from PE %d on", group->proc_count, (int)group->proc_vpids[0]);
  message(setup, &mca_scoll_gba_component.common, name);
}

/* Callers of OpenSHMEM's barriers get no errors, and would continue without the barrier. REQUIRES: the lock. */
static int end_job(const oshmem_group_t* group, const gba_ompi_setup_t* setup) {
  report(gba_ompi_report_late, group, setup);
  oshmem_shmem_abort(1);
  return OSHMEM_ERR_TIMEOUT;
}

static void update_callback(gba_ompi_component_t* common) {
  OPAL_THREAD_LOCK(&common->lock);
  gba_ompi_component_listen(common, false);
  OPAL_THREAD_UNLOCK(&common->lock);
}

int mca_scoll_gba_progress(void) {
  gba_ompi_component_t* const common = &mca_scoll_gba_component.common;
  if (atomic_flag_test_and_set_explicit(&common->running, memory_order_acquire)) {
    return 0;
  }
  gba_ompi_remote_progress(&common->channel);
  update_callback(common);
  atomic_flag_clear_explicit(&common->running, memory_order_release);
  return 0;
}

/* Blocks until all members have agreed on whether the device does the group's barriers. */
static int agree(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  gba_ompi_setup_t* const setup = module->setup;
  gba_ompi_component_t* const common = &mca_scoll_gba_component.common;
  const uint64_t since = gba_ompi_now();
  mca_scoll_gba_begin(module, group);
  while (gba_ompi_setup_progress(setup) != 0) {
    if (gba_ompi_is_late(setup, common, since)) {
      return end_job(group, setup);
    }
    gba_ompi_run_progress(setup);
  }
  update_callback(common);
  report(gba_ompi_report_decision, group, setup);
  return OSHMEM_SUCCESS;
}

static int barrier_of_device(const oshmem_group_t* group, gba_ompi_setup_t* setup) {
  if (gba_ompi_wait(setup, &mca_scoll_gba_component.common) != 0) {
    return end_job(group, setup);
  }
  if (setup->barrier.over) {
    report(gba_ompi_report_lost, group, setup);
  }
  return OSHMEM_SUCCESS;
}

int mca_scoll_gba_barrier(oshmem_group_t* group, long* pSync, int algorithm) {
  mca_scoll_gba_module_t* const module = (mca_scoll_gba_module_t*)group->g_scoll.scoll_barrier_module;
  gba_ompi_setup_t* const setup = module->setup;
  OPAL_THREAD_LOCK(&setup->lock);
  int status = module->begun ? OSHMEM_SUCCESS : agree(module, group);
  const bool used = setup->decision.reason == GBA_OMPI_USED && !setup->barrier.over;
  if (status == OSHMEM_SUCCESS && used) {
    status = barrier_of_device(group, setup);
  }
  OPAL_THREAD_UNLOCK(&setup->lock);
  if (status != OSHMEM_SUCCESS || used) {
    return status;
  }
  return barrier_of_previous(group, module, pSync, algorithm);
}
