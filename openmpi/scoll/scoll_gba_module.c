/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"
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
  if (module->barrier_module != NULL) OBJ_RELEASE(module->barrier_module);
}

OBJ_CLASS_INSTANCE(mca_scoll_gba_module_t, mca_scoll_base_module_t, construct, destruct);

mca_scoll_base_module_t* mca_scoll_gba_query(oshmem_group_t* group, int* priority) {
  *priority = mca_scoll_gba_component.options.priority;
  if (group->proc_count < 2) return NULL; /* nobody asks why */
  if (group->proc_count > MOST_MEMBERS) {
    opal_output_verbose(GBA_OMPI_SAY, mca_scoll_gba_component.options.stream,
                        "scoll:gba: the group of %d PEs from PE %d on is not for the device: more than 708 members",
                        group->proc_count, (int)group->proc_vpids[0]);
    return NULL;
  }
  mca_scoll_gba_module_t* const module = OBJ_NEW(mca_scoll_gba_module_t);
  return module == NULL ? NULL : &module->super;
}

static int enable(mca_scoll_base_module_t* base, oshmem_group_t* group) {
  mca_scoll_gba_module_t* const module = (mca_scoll_gba_module_t*)base;
  if (group->g_scoll.scoll_barrier == NULL || group->g_scoll.scoll_barrier_module == NULL) return OSHMEM_ERROR;
  module->setup = gba_ompi_setup_new();
  module->ranks = calloc((size_t)group->proc_count, sizeof *module->ranks);
  /* liboshmem has no way to leave out a module that all others count on. */
  if (module->setup == NULL || module->ranks == NULL) abort();
  for (int member = 0; member < group->proc_count; ++member) module->ranks[member] = (int)group->proc_vpids[member];
  module->barrier = group->g_scoll.scoll_barrier;
  module->barrier_module = group->g_scoll.scoll_barrier_module;
  OBJ_RETAIN(module->barrier_module);
  return OSHMEM_SUCCESS;
}

/* Once in a process. */
static int open_port(mca_scoll_gba_component_t* component) {
  OPAL_THREAD_LOCK(&component->lock);
  if (!component->port_tried) {
    gba_device_info info;
    component->port_tried = true;
    component->port_error = gba_ompi_port_open(gba_ompi_options_path(&component->options),
                                               (uint32_t)opal_process_info.my_local_rank, &component->port);
    component->is_process = component->port.device != NULL && gba_device_get_info(component->port.device, &info) == 0 &&
                            info.is_process != 0;
  }
  OPAL_THREAD_UNLOCK(&component->lock);
  return component->port_error;
}

/* What only this PE may know, and tells the others: 0, or why it does not take part. */
static int refuse(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  const gba_ompi_options_t* const options = &mca_scoll_gba_component.options;
  const char* reason = NULL;
  if (options->disable) {
    reason = "scoll_gba_disable is set";
  } else if (group->proc_count < options->min_size) {
    reason = "the group has fewer members than scoll_gba_min_group_size";
  }
  if (reason == NULL) return 0;
  snprintf(module->refusal.trouble, sizeof module->refusal.trouble, "%s", reason);
  return -ECANCELED;
}

void mca_scoll_gba_say(const gba_ompi_setup_t* setup, const oshmem_group_t* group) {
  const int stream = mca_scoll_gba_component.options.stream;
  char text[256];
  if (opal_output_get_verbosity(stream) < GBA_OMPI_SAY) return;
  if (setup->party.self == 0) {
    gba_ompi_setup_text(setup, text, sizeof text);
    opal_output(stream, "scoll:gba: the %d PEs from PE %d on: %s", group->proc_count, (int)group->proc_vpids[0], text);
  }
  if (setup->trouble[0] != '\0') opal_output(stream, "scoll:gba: PE %d: %s", group->my_pe, setup->trouble);
}

/* On oshmem_comm_world, where liboshmem itself uses tag 0, and no other component one that is not negative: between two
 * PEs, one of which is the first member, a group's size and stride name it. REQUIRES: two members at least. */
static int first_tag(const oshmem_group_t* group) {
  enum { FIRST_TAG = 0x10000, STRIDES = 32 };
  const unsigned stride = group->proc_vpids[1] - group->proc_vpids[0]; /* a power of two */
  return FIRST_TAG + 2 * (group->proc_count * STRIDES + __builtin_ctz(stride));
}

void mca_scoll_gba_begin(mca_scoll_gba_module_t* module, const oshmem_group_t* group) {
  mca_scoll_gba_component_t* const component = &mca_scoll_gba_component;
  const gba_ompi_party_t party = {.comm = oshmem_comm_world,
                                  .ranks = module->ranks,
                                  .members = group->proc_count,
                                  .self = oshmem_proc_group_find_id((oshmem_group_t*)group, group->my_pe),
                                  .up = first_tag(group),
                                  .down = first_tag(group) + 1};
  const int refused = refuse(module, group);
  const int error = refused != 0 ? refused : open_port(component);
  gba_ompi_port_t* const port = refused != 0 ? &module->refusal : &component->port;
  module->begun = true;
  gba_ompi_setup_begin(module->setup, &party, port, error, &component->channel);
}
