/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll_gba.h"

#include "opal/util/output.h"
#include "opal/util/proc.h"

static void construct(mca_coll_gba_module_t* module) {
  memset((char*)module + sizeof module->super, 0, sizeof *module - sizeof module->super);
  OBJ_CONSTRUCT(&module->requests, opal_list_t);
  OBJ_CONSTRUCT(&module->link.super, opal_list_item_t);
  module->link.module = module;
  module->super.coll_module_enable = mca_coll_gba_enable;
  module->super.coll_barrier = mca_coll_gba_barrier;
  module->super.coll_ibarrier = mca_coll_gba_ibarrier;
}

static void destruct(mca_coll_gba_module_t* module) {
  mca_coll_gba_forget(module);
  gba_ompi_setup_free(module->setup);
  if (module->barrier_module != NULL) OBJ_RELEASE(module->barrier_module);
  if (module->ibarrier_module != NULL) OBJ_RELEASE(module->ibarrier_module);
  OBJ_DESTRUCT(&module->link.super);
  OBJ_DESTRUCT(&module->requests);
}

OBJ_CLASS_INSTANCE(mca_coll_gba_module_t, mca_coll_base_module_t, construct, destruct);

/* Once in a process. */
static void open_port(mca_coll_gba_component_t* component) {
  OPAL_THREAD_LOCK(&component->lock);
  if (!component->port_tried) {
    component->port_tried = true;
    component->port_error = gba_ompi_port_open(gba_ompi_options_path(&component->options),
                                               (uint32_t)opal_process_info.my_local_rank, &component->port);
    if (component->port_error != 0) {
      opal_output_verbose(GBA_OMPI_SAY, component->options.stream, "coll:gba: this process cannot use a device: %s",
                          component->port.trouble);
    }
    gba_device_info info;
    component->is_process = component->port.device != NULL && gba_device_get_info(component->port.device, &info) == 0 &&
                            info.is_process != 0;
  }
  OPAL_THREAD_UNLOCK(&component->lock);
}

int mca_coll_gba_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  mca_coll_gba_module_t* const module = (mca_coll_gba_module_t*)base;
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  if (comm->c_coll->coll_barrier == NULL || comm->c_coll->coll_ibarrier == NULL) return OMPI_ERR_NOT_AVAILABLE;
  module->setup = gba_ompi_setup_new();
  if (module->setup == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
  module->barrier = comm->c_coll->coll_barrier;
  module->barrier_module = comm->c_coll->coll_barrier_module;
  module->ibarrier = comm->c_coll->coll_ibarrier;
  module->ibarrier_module = comm->c_coll->coll_ibarrier_module;
  OBJ_RETAIN(module->barrier_module);
  OBJ_RETAIN(module->ibarrier_module);
  open_port(component);
  const gba_ompi_party_t party = {.comm = comm,
                                  .ranks = NULL,
                                  .members = ompi_comm_size(comm),
                                  .self = ompi_comm_rank(comm),
                                  .up = GBA_OMPI_TAG_UP,
                                  .down = GBA_OMPI_TAG_DOWN};
  OPAL_THREAD_LOCK(&module->setup->lock);
  /* Only begun: MPI_Comm_idup comes by here within the progress engine, which must not wait for others. */
  gba_ompi_setup_begin(module->setup, &party, &component->port, component->port_error, &component->channel);
  mca_coll_gba_activate(module);
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return OMPI_SUCCESS;
}

static void say(const mca_coll_gba_module_t* module) {
  const int stream = mca_coll_gba_component.options.stream;
  char text[256];
  if (opal_output_get_verbosity(stream) < GBA_OMPI_SAY) return;
  if (module->setup->party.self == 0) {
    gba_ompi_setup_text(module->setup, text, sizeof text);
    opal_output(stream, "coll:gba: communicator %s: %s", module->comm->c_name, text);
  }
  if (module->setup->trouble[0] != '\0') {
    opal_output(stream, "coll:gba: communicator %s, rank %d: %s", module->comm->c_name, module->setup->party.self,
                module->setup->trouble);
  }
}

void mca_coll_gba_settle(mca_coll_gba_module_t* module) {
  if (module->server != MCA_COLL_GBA_UNDECIDED || gba_ompi_setup_progress(module->setup) != 0) return;
  module->server = module->setup->decision.reason == GBA_OMPI_USED ? MCA_COLL_GBA_DEVICE : MCA_COLL_GBA_SOFTWARE;
  say(module);
}

void mca_coll_gba_step_aside(mca_coll_gba_module_t* module) {
  mca_coll_base_comm_coll_t* const calls = module->comm->c_coll;
  module->server = MCA_COLL_GBA_PREVIOUS;
  /* Unless a module of a higher priority has put itself in front, and calls this one. The communicator's reference to
   * this module goes; its list of modules keeps it. */
  if (calls->coll_barrier_module == &module->super) {
    calls->coll_barrier = module->barrier;
    calls->coll_barrier_module = module->barrier_module;
    OBJ_RETAIN(module->barrier_module);
    OBJ_RELEASE(module);
  }
  if (calls->coll_ibarrier_module == &module->super) {
    calls->coll_ibarrier = module->ibarrier;
    calls->coll_ibarrier_module = module->ibarrier_module;
    OBJ_RETAIN(module->ibarrier_module);
    OBJ_RELEASE(module);
  }
}
