/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "coll_gba.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

static const uint64_t kSecond = 1000000000;
/* ns. After the first a lost doorbell or release is looked for, and the processor is left to others; the second is for
 * a device that is a process and has to get its turn. From then on the progress engine runs once in the third. */
static const uint64_t kPatience = 1000000;
static const uint64_t kPatienceWithProcess = 20000;
static const uint64_t kNap = 100000;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * kSecond + (uint64_t)time.tv_nsec;
}

void mca_coll_gba_count(mca_coll_gba_module_t* module) {
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  gba_ompi_options_t* const options = &mca_coll_gba_component.options;
  /* Atomic, since other modules' threads count too. */
  __atomic_fetch_add(&options->offloaded, barrier->by_device, __ATOMIC_RELAXED);
  __atomic_fetch_add(&options->fallen_back, barrier->by_words, __ATOMIC_RELAXED);
  barrier->by_device = 0;
  barrier->by_words = 0;
  if (barrier->over) {
    opal_output_verbose(GBA_OMPI_SAY, options->stream, "coll:gba: communicator %s, rank %d: no device any more: %s",
                        module->comm->c_name, module->setup->party.self, barrier->trouble);
  }
}

static void give_way(mca_coll_gba_module_t* module) {
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  opal_progress();
  OPAL_THREAD_LOCK(&module->setup->lock);
}

static int report_timeout(const mca_coll_gba_module_t* module) {
  uint64_t mask[GBA_GROUP_MASK_WORDS];
  char ranks[256] = "";
  size_t length = 0;
  gba_ompi_barrier_missing(&module->setup->barrier, mask, GBA_GROUP_MASK_WORDS);
  uint32_t place = 0;
  const gba_ompi_offer_t* const offers = module->setup->offers;
  for (int rank = 0; rank < module->setup->party.members && length < sizeof ranks; ++rank) {
    if (offers[rank].node != offers[module->setup->party.self].node) continue;
    if ((mask[place / 64] >> place % 64 & 1) != 0) {
      length += (size_t)snprintf(ranks + length, sizeof ranks - length, " %d", rank);
    }
    ++place;
  }
  opal_output(
      0, "coll:gba: a barrier of communicator %s has taken %d s (coll_gba_timeout); ranks that have not come:%s",
      module->comm->c_name, mca_coll_gba_component.options.timeout, ranks[0] == '\0' ? " some on other nodes" : ranks);
  return OMPI_ERR_TIMEOUT;
}

static int wait_for_release(mca_coll_gba_module_t* module) {
  const gba_ompi_options_t* const options = &mca_coll_gba_component.options;
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  for (int look = 0; look < options->spin; ++look) {
    if (gba_ompi_barrier_test(barrier) == 0) return OMPI_SUCCESS;
  }
  const uint64_t patience = mca_coll_gba_component.is_process ? kPatienceWithProcess : kPatience;
  const uint64_t begin = now();
  while (gba_ompi_barrier_test(barrier) != 0) {
    give_way(module);
    const uint64_t waited = now() - begin;
    if (waited > patience && gba_ompi_barrier_sleep(barrier, kNap) == 0) break;
    if (options->timeout > 0 && waited > (uint64_t)options->timeout * kSecond) return report_timeout(module);
  }
  return OMPI_SUCCESS;
}

static int barrier_of_device(mca_coll_gba_module_t* module) {
  gba_ompi_barrier_t* const barrier = &module->setup->barrier;
  const uint64_t begin = now();
  if (!barrier->open) gba_ompi_barrier_start(barrier); /* else one that has timed out is taken up again */
  const int status = wait_for_release(module);
  __atomic_fetch_add(&mca_coll_gba_component.options.waiting_ns, now() - begin, __ATOMIC_RELAXED);
  if (status == OMPI_SUCCESS) mca_coll_gba_count(module);
  return status;
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
  while (module->server == MCA_COLL_GBA_UNDECIDED || !opal_list_is_empty(&module->requests)) give_way(module);
  if (module->server != MCA_COLL_GBA_DEVICE || module->setup->barrier.over) return barrier_of_previous(module);
  const int status = barrier_of_device(module);
  OPAL_THREAD_UNLOCK(&module->setup->lock);
  return status;
}
