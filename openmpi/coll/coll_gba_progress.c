/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes on without a blocking barrier: agreements, MPI_Ibarriers, and answers to other nodes. Open MPI's progress
 * engine comes by here, from any thread that waits for anything, as long as there is a module with something under way.
 */
#include "coll_gba.h"
#include "opal/runtime/opal_progress.h"

static void listen_if_needed(mca_coll_gba_component_t* component) {
  const bool needed = opal_list_get_size(&component->active) > 0 || gba_ompi_far_needed(&component->channel);
  if (needed && !component->listening) opal_progress_register(mca_coll_gba_progress);
  if (!needed && component->listening) opal_progress_unregister(mca_coll_gba_progress);
  component->listening = needed;
}

static void put_on_list(mca_coll_gba_module_t* module) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  OPAL_THREAD_LOCK(&component->lock);
  opal_list_append(&component->active, &module->link.super);
  listen_if_needed(component);
  OPAL_THREAD_UNLOCK(&component->lock);
}

static mca_coll_gba_module_t* take_from_list(void) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  OPAL_THREAD_LOCK(&component->lock);
  opal_list_item_t* const item = opal_list_remove_first(&component->active);
  OPAL_THREAD_UNLOCK(&component->lock);
  return item == NULL ? NULL : ((mca_coll_gba_link_t*)item)->module;
}

void mca_coll_gba_activate(mca_coll_gba_module_t* module) {
  if (module->active) return;
  module->active = true;
  OBJ_RETAIN(module->comm);
  put_on_list(module);
}

/* Only MPI_Finalize destroys a communicator in spite of a reference. */
void mca_coll_gba_forget(mca_coll_gba_module_t* module) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  if (!module->active) return;
  OPAL_THREAD_LOCK(&component->lock);
  opal_list_remove_item(&component->active, &module->link.super);
  listen_if_needed(component);
  OPAL_THREAD_UNLOCK(&component->lock);
  module->active = false;
}

/* A step for a module that has been taken from the list. */
static int look_after(mca_coll_gba_module_t* module) {
  opal_list_t ended;
  OBJ_CONSTRUCT(&ended, opal_list_t);
  OPAL_THREAD_LOCK(&module->setup->lock);
  mca_coll_gba_settle(module);
  const int events = mca_coll_gba_serve(module, &ended);
  const bool done = module->server != MCA_COLL_GBA_UNDECIDED && opal_list_is_empty(&module->requests);
  module->active = !done;
  ompi_communicator_t* comm = module->comm;
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  if (!done) put_on_list(module);
  mca_coll_gba_complete(&ended);
  OBJ_DESTRUCT(&ended);
  if (done) OBJ_RELEASE(comm); /* the last reference, if it has been freed: the module goes with it */
  return events;
}

int mca_coll_gba_progress(void) {
  mca_coll_gba_component_t* const component = &mca_coll_gba_component;
  int events = 0;
  if (atomic_flag_test_and_set_explicit(&component->running, memory_order_acquire)) return 0;
  OPAL_THREAD_LOCK(&component->lock);
  size_t modules = opal_list_get_size(&component->active);
  OPAL_THREAD_UNLOCK(&component->lock);
  for (; modules > 0; --modules) {
    mca_coll_gba_module_t* const module = take_from_list();
    if (module == NULL) break;
    events += look_after(module);
  }
  gba_ompi_far_progress(&component->channel);
  OPAL_THREAD_LOCK(&component->lock);
  listen_if_needed(component);
  OPAL_THREAD_UNLOCK(&component->lock);
  atomic_flag_clear_explicit(&component->running, memory_order_release);
  return events;
}
