/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_wait.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "opal/runtime/opal_progress.h"

static const uint64_t kSecond = 1000000000;
/* ns. After the first a lost doorbell or release is looked for, and the processor is left to others; the second is for
 * a device that is a process, and to which Open MPI, which counts its own processes only, may have left no processor.
 * From then on the progress engine runs once in the third. Yielding is no substitute: where others want the processor
 * too, it comes back after their turn. */
static const uint64_t kPatience = 1000000;
static const uint64_t kPatienceWithProcess = 1000;
static const uint64_t kNap = 100000;

uint64_t gba_ompi_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * kSecond + (uint64_t)time.tv_nsec;
}

void gba_ompi_give_way(gba_ompi_setup_t* setup) {
  OPAL_THREAD_UNLOCK(&setup->lock);
  opal_progress();
  OPAL_THREAD_LOCK(&setup->lock);
}

bool gba_ompi_is_late(const gba_ompi_setup_t* setup, const gba_ompi_options_t* options, uint64_t since) {
  if (options->timeout <= 0) return false;
  uint64_t allowed = (uint64_t)options->timeout * kSecond;
  /* Only the first member knows whom the others wait for: it is the first to say so. */
  if (setup->stage != GBA_OMPI_DECIDED && setup->party.self != 0) allowed += allowed / 2;
  return gba_ompi_now() - since > allowed;
}

static int wait_for_release(gba_ompi_setup_t* setup, const gba_ompi_options_t* options, bool is_process) {
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  for (int look = 0; look < options->spin; ++look) {
    if (gba_ompi_barrier_test(barrier) == 0) return 0;
  }
  const uint64_t patience = is_process ? kPatienceWithProcess : kPatience;
  const uint64_t begin = gba_ompi_now();
  while (gba_ompi_barrier_test(barrier) != 0) {
    gba_ompi_give_way(setup);
    if (gba_ompi_now() - begin > patience && gba_ompi_barrier_sleep(barrier, kNap) == 0) break;
    if (gba_ompi_is_late(setup, options, begin)) return -ETIMEDOUT;
  }
  return 0;
}

int gba_ompi_wait(gba_ompi_setup_t* setup, gba_ompi_options_t* options, bool is_process) {
  const uint64_t begin = gba_ompi_now();
  if (!setup->barrier.open) gba_ompi_barrier_start(&setup->barrier); /* else it has timed out */
  const int status = wait_for_release(setup, options, is_process);
  __atomic_fetch_add(&options->waiting_ns, gba_ompi_now() - begin, __ATOMIC_RELAXED);
  if (status == 0) gba_ompi_count(setup, options);
  return status;
}

void gba_ompi_count(gba_ompi_setup_t* setup, gba_ompi_options_t* options) {
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  /* Atomic, since other modules' threads count too. */
  __atomic_fetch_add(&options->offloaded, barrier->by_device, __ATOMIC_RELAXED);
  __atomic_fetch_add(&options->fallen_back, barrier->by_words, __ATOMIC_RELAXED);
  barrier->by_device = 0;
  barrier->by_words = 0;
}

static size_t add_rank(const gba_ompi_party_t* party, int member, char* text, size_t size, size_t length) {
  const int rank = party->ranks == NULL ? member : party->ranks[member];
  return length < size ? length + (size_t)snprintf(text + length, size - length, " %d", rank) : length;
}

static void missing_in_agreement(const gba_ompi_setup_t* setup, char* text, size_t size) {
  const gba_ompi_party_t* const party = &setup->party;
  size_t length = 0;
  if (party->self != 0) {
    length = add_rank(party, 0, text, size, length);
    if (length < size) snprintf(text + length, size - length, ", or one that it waits for");
    return;
  }
  for (int member = 1; member < party->members; ++member) {
    if (gba_ompi_exchange_awaits(&setup->exchange, member)) length = add_rank(party, member, text, size, length);
  }
}

static void missing_in_barrier(const gba_ompi_setup_t* setup, char* text, size_t size) {
  uint64_t mask[GBA_GROUP_MASK_WORDS];
  size_t length = 0;
  uint32_t place = 0;
  const gba_ompi_party_t* const party = &setup->party;
  gba_ompi_barrier_missing(&setup->barrier, mask, GBA_GROUP_MASK_WORDS);
  for (int member = 0; member < party->members; ++member) {
    if (setup->offers[member].node != setup->offers[party->self].node) continue;
    if ((mask[place / 64] >> place % 64 & 1) != 0) length = add_rank(party, member, text, size, length);
    ++place;
  }
  if (length == 0) snprintf(text, size, " some on other nodes");
}

void gba_ompi_missing_text(const gba_ompi_setup_t* setup, char* text, size_t size) {
  text[0] = '\0';
  if (setup->stage == GBA_OMPI_DECIDED) {
    missing_in_barrier(setup, text, size);
  } else {
    missing_in_agreement(setup, text, size);
  }
}
