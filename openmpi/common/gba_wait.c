/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_wait.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

static const uint64_t kSecond = 1000000000;
/* ns. After kSpin a waiting process looks for a lost doorbell or release, and leaves the processor to others: it
 * sleeps, and the progress engine runs once in kSleep. */
static const uint64_t kSpin = 1000000;
static const uint64_t kSleep = 100000;
/* A device that is a process needs a processor at once: Open MPI, which counts its own processes only, may have left it
 * none. A yield is the fastest way to give it one. If a yield takes longer than kLongYield, the processor has gone to
 * other programs, which keep it for their turns of milliseconds: for kNoYields after that, waiting processes sleep. */
static const uint64_t kSpinWithProcess = 1000;
static const uint64_t kLongYield = 500000;
static const uint64_t kNoYields = 100000000;

uint64_t gba_ompi_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * kSecond + (uint64_t)time.tv_nsec;
}

void gba_ompi_run_progress(gba_ompi_setup_t* setup) {
  OPAL_THREAD_UNLOCK(&setup->lock);
  opal_progress();
  OPAL_THREAD_LOCK(&setup->lock);
}

bool gba_ompi_is_late(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, uint64_t since) {
  const int timeout = component->options.timeout;
  if (timeout <= 0) {
    return false;
  }
  uint64_t allowed = (uint64_t)timeout * kSecond;
  /* During the agreement only the first member knows which members are missing: it reports first. */
  if (setup->stage != GBA_OMPI_DECIDED && setup->team.self != 0) {
    allowed += allowed / 2;
  }
  return gba_ompi_now() - since > allowed;
}

static int sleep_briefly(gba_ompi_setup_t* setup) {
  return gba_ompi_barrier_sleep(&setup->barrier, kSleep);
}

/* What may have been a yield, has ended. */
static void note_yield(gba_ompi_component_t* component, uint64_t before, uint64_t after) {
  if (after - before > kLongYield) {
    /* Relaxed, as the load: a hint, which threads may miss. */
    atomic_store_explicit(&component->yields_from, after + kNoYields, memory_order_relaxed);
  }
}

int gba_ompi_give_way(gba_ompi_setup_t* setup, gba_ompi_component_t* component) {
  if (!component->is_process) {
    return -EAGAIN;
  }
  const uint64_t before = gba_ompi_now();
  if (before < atomic_load_explicit(&component->yields_from, memory_order_relaxed)) {
    return sleep_briefly(setup);
  }
  if (!opal_progress_yield_when_idle) { /* else the progress engine does it */
    sched_yield();
    note_yield(component, before, gba_ompi_now());
  }
  return -EAGAIN;
}

static int wait_for_release(gba_ompi_setup_t* setup, gba_ompi_component_t* component) {
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  for (int look = 0; look < component->options.spin; ++look) {
    if (gba_ompi_barrier_test(barrier) == 0) {
      return 0;
    }
  }
  const uint64_t begin = gba_ompi_now();
  while (gba_ompi_barrier_test(barrier) != 0) {
    const uint64_t before = gba_ompi_now();
    gba_ompi_run_progress(setup);
    const uint64_t after = gba_ompi_now();
    note_yield(component, before, after);
    const bool over = after - begin > kSpin              ? sleep_briefly(setup) == 0
                      : after - begin > kSpinWithProcess ? gba_ompi_give_way(setup, component) == 0
                                                         : false;
    if (over) {
      break;
    }
    if (gba_ompi_is_late(setup, component, begin)) {
      return -ETIMEDOUT;
    }
  }
  return 0;
}

int gba_ompi_wait(gba_ompi_setup_t* setup, gba_ompi_component_t* component) {
  const uint64_t begin = gba_ompi_now();
  if (!setup->barrier.open) {
    gba_ompi_barrier_start(&setup->barrier); /* else it has timed out */
  }
  const int status = wait_for_release(setup, component);
  __atomic_fetch_add(&component->options.waiting_ns, gba_ompi_now() - begin, __ATOMIC_RELAXED);
  if (status == 0) {
    gba_ompi_count(setup, component);
  }
  return status;
}

void gba_ompi_count(gba_ompi_setup_t* setup, gba_ompi_component_t* component) {
  gba_ompi_options_t* const options = &component->options;
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  /* Atomic, since other modules' threads count too. */
  __atomic_fetch_add(&options->offloaded, barrier->by_device, __ATOMIC_RELAXED);
  __atomic_fetch_add(&options->fallen_back, barrier->by_words, __ATOMIC_RELAXED);
  barrier->by_device = 0;
  barrier->by_words = 0;
}

static int rank_of(const gba_ompi_team_t* team, int member) {
  return team->ranks == NULL ? member : team->ranks[member];
}

static size_t add_rank(const gba_ompi_team_t* team, int member, char* text, size_t size, size_t length) {
  return length < size ? length + (size_t)snprintf(text + length, size - length, " %d", rank_of(team, member)) : length;
}

static void missing_in_agreement(const gba_ompi_setup_t* setup, char* text, size_t size) {
  const gba_ompi_team_t* const team = &setup->team;
  size_t length = 0;
  if (team->self != 0) {
    length = add_rank(team, 0, text, size, length);
    if (length < size) {
      snprintf(text + length, size - length, ", or one that it waits for");
    }
    return;
  }
  for (int member = 1; member < team->members; ++member) {
    if (gba_ompi_exchange_awaits(&setup->exchange, member)) {
      length = add_rank(team, member, text, size, length);
    }
  }
}

static void missing_in_barrier(const gba_ompi_setup_t* setup, char* text, size_t size) {
  uint64_t mask[GBA_GROUP_MASK_WORDS];
  size_t length = 0;
  uint32_t place = 0;
  const gba_ompi_team_t* const team = &setup->team;
  (void)gba_barrier_missing(setup->barrier.lossless, mask);
  for (int member = 0; member < team->members; ++member) {
    if (setup->offers[member].node != setup->offers[team->self].node) {
      continue;
    }
    if ((mask[place / 64] >> place % 64 & 1) != 0) {
      length = add_rank(team, member, text, size, length);
    }
    ++place;
  }
  if (length == 0) {
    snprintf(text, size, " some on other nodes");
  }
}

void gba_ompi_report_late(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name) {
  char missing[256] = "";
  if (setup->stage == GBA_OMPI_DECIDED) {
    missing_in_barrier(setup, missing, sizeof missing);
  } else {
    missing_in_agreement(setup, missing, sizeof missing);
  }
  opal_output(0, "%s:gba: a barrier of %s has taken %d s (%s_gba_timeout); %ss that have not come:%s",
              component->framework, name, component->options.timeout, component->framework, component->process,
              missing);
}

void gba_ompi_report_decision(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name) {
  const int stream = component->options.stream;
  char text[256];
  if (setup->team.self == 0) {
    gba_ompi_setup_text(setup, text, sizeof text);
    opal_output_verbose(GBA_OMPI_VERBOSITY, stream, "%s:gba: %s: %s", component->framework, name, text);
  }
  if (setup->trouble[0] != '\0') {
    opal_output_verbose(GBA_OMPI_VERBOSITY, stream, "%s:gba: %s, %s %d: %s", component->framework, name,
                        component->process, rank_of(&setup->team, setup->team.self), setup->trouble);
  }
}

void gba_ompi_report_lost(const gba_ompi_setup_t* setup, const gba_ompi_component_t* component, const char* name) {
  opal_output_verbose(GBA_OMPI_VERBOSITY, component->options.stream, "%s:gba: %s, %s %d: no device any more: %s",
                      component->framework, name, component->process, rank_of(&setup->team, setup->team.self),
                      gba_ompi_barrier_status(&setup->barrier).trouble);
}
