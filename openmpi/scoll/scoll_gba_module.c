/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"
#include "scoll_gba.h"

enum { MOST_MEMBERS = 708 };

static int enable(mca_scoll_base_module_t* base, oshmem_group_t* group);

static void construct(mca_scoll_gba_module_t* module) {
  memset((char*)module + sizeof module->super, 0, sizeof *module - sizeof module->super);
  memset((char*)module + sizeof module->super.super, 0, sizeof module->super - sizeof module->super.super);
  module->super.scoll_module_enable = enable;
  module->super.scoll_barrier = mca_scoll_gba_barrier;
}

static void destruct(mca_scoll_gba_module_t* module) {
  gba_ompi_setup_free(module->setup);
  free(module->ranks);
  if (module->barrier_module != NULL) {
    OBJ_RELEASE(module->barrier_module);
  }
}

OBJ_CLASS_INSTANCE(mca_scoll_gba_module_t, mca_scoll_base_module_t, construct, destruct);

mca_scoll_base_module_t* mca_scoll_gba_query(oshmem_group_t* group, int* priority) {
  *priority = mca_scoll_gba_component.common.options.priority;
  if (group->proc_count < 2) {
    return NULL; /* never printed */
  }
  if (group->proc_count > MOST_MEMBERS) {
    opal_output_verbose(GBA_OMPI_VERBOSITY, mca_scoll_gba_component.common.options.stream,
                        "scoll:gba: the group of %d PEs from PE %d on is not for the device: more than 708 members",
                        group->proc_count, (int)group->proc_vpids[0]);
    return NULL;
  }
  mca_scoll_gba_module_t* const module = OBJ_NEW(mca_scoll_gba_module_t);
  return module == NULL ? NULL : &module->super;
}

static int enable(mca_scoll_base_module_t* base, oshmem_group_t* group) {
  mca_scoll_gba_module_t* const module = (mca_scoll_gba_module_t*)base;
  if (group->g_scoll.scoll_barrier == NULL || group->g_scoll.scoll_barrier_module == NULL) {
    return OSHMEM_ERROR;
  }
  module->setup = gba_ompi_setup_new();
  module->ranks = calloc((size_t)group->proc_count, sizeof *module->ranks);
  /* liboshmem cannot omit a module that all other PEs rely on. */
  if (module->setup == NULL || module->ranks == NULL) {
    abort();
  }
  for (int member = 0; member < group->proc_count; ++member) {
    module->ranks[member] = (int)group->proc_vpids[member];
  }
  module->barrier = group->g_scoll.scoll_barrier;
  module->barrier_module = group->g_scoll.scoll_barrier_module;
  OBJ_RETAIN(module->barrier_module);
  return OSHMEM_SUCCESS;
}

/* What only this PE may know, and sends to the others: 0, or why it does not take part. */
static int refuse(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  const gba_ompi_options_t* const options = &mca_scoll_gba_component.common.options;
  const char* reason = NULL;
  if (options->disable) {
    reason = "scoll_gba_disable is set";
  } else if (group->proc_count < options->min_size) {
    reason = "the group has fewer members than scoll_gba_min_group_size";
  }
  if (reason == NULL) {
    return 0;
  }
  snprintf(module->refusal.trouble, sizeof module->refusal.trouble, "%s", reason);
  return -ECANCELED;
}

/* On oshmem_comm_world, where liboshmem itself uses tag 0, and no other component one that is not negative: between two
 * PEs, one of which is the first member, a group's size and stride name it. REQUIRES: two members at least. */
static int first_tag(const oshmem_group_t* group) {
  enum { FIRST_TAG = 0x10000, STRIDES = 32 };
  const unsigned stride = group->proc_vpids[1] - group->proc_vpids[0]; /* a power of two */
  return FIRST_TAG + 2 * (group->proc_count * STRIDES + __builtin_ctz(stride));
}

void mca_scoll_gba_begin(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  gba_ompi_component_t* const common = &mca_scoll_gba_component.common;
  const gba_ompi_team_t team = {.comm = oshmem_comm_world,
                                .ranks = module->ranks,
                                .members = group->proc_count,
                                .self = oshmem_proc_group_find_id((oshmem_group_t*)group, group->my_pe),
                                .up = first_tag(group),
                                .down = first_tag(group) + 1};
  const int refused = refuse(module, group);
  const int error = refused != 0 ? refused : gba_ompi_component_open_port(common);
  gba_ompi_port_t* const port = refused != 0 ? &module->refusal : &common->port;
  module->begun = true;
  gba_ompi_setup_begin(module->setup, &team, port, error, &common->channel);
}
