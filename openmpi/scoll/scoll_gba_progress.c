/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to other nodes: Open MPI's progress engine comes by here, from any thread that waits for anything, as long as
 * there is a group whose members are on several nodes. */
#include "scoll_gba.h"

#include "opal/runtime/opal_progress.h"

static int progress(void);

static void listen_if_needed(mca_scoll_gba_component_t* component) {
  OPAL_THREAD_LOCK(&component->lock);
  const bool needed = gba_ompi_far_needed(&component->channel);
  if (needed && !component->listening) opal_progress_register(progress);
  if (!needed && component->listening) opal_progress_unregister(progress);
  component->listening = needed;
  OPAL_THREAD_UNLOCK(&component->lock);
}

static int progress(void) {
  mca_scoll_gba_component_t* const component = &mca_scoll_gba_component;
  if (atomic_flag_test_and_set_explicit(&component->running, memory_order_acquire)) return 0;
  gba_ompi_far_progress(&component->channel);
  listen_if_needed(component);
  atomic_flag_clear_explicit(&component->running, memory_order_release);
  return 0;
}

void mca_scoll_gba_listen(void) {
  listen_if_needed(&mca_scoll_gba_component);
}

void mca_scoll_gba_stop_listening(void) {
  mca_scoll_gba_component_t* const component = &mca_scoll_gba_component;
  while (gba_ompi_far_needed(&component->channel) && !gba_ompi_far_is_finalized()) opal_progress();
  if (component->listening) opal_progress_unregister(progress);
  component->listening = false;
  gba_ompi_far_end(&component->channel);
}
