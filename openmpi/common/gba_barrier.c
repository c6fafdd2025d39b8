/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_barrier.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t kLookOnly = UINT64_MAX; /* do not sleep, do not ring again */
static const uint64_t kLongestNap = 1000000;  /* ns */

static gba_ompi_words_t* words_of(const gba_ompi_barrier_t* barrier, uint32_t local) {
  return &barrier->board->members[local];
}

static bool is_leader(const gba_ompi_barrier_t* barrier) {
  return barrier->local == 0 && barrier->far.nodes > 0;
}

static uint64_t word_at(const gba_ompi_barrier_t* barrier, uint32_t local, uint64_t k) {
  /* Acquire, pairs with publish(): what the member stored before it arrived is visible to whoever goes on because of
   * this word, and to whoever is released by the doorbell that is rung because of it. */
  return atomic_load_explicit(&words_of(barrier, local)->word[k & 1], memory_order_acquire);
}

static void publish(const gba_ompi_barrier_t* barrier) {
  const uint64_t vote = barrier->off ? GBA_OMPI_OFF : GBA_OMPI_ON;
  /* Release, pairs with word_at(). The doorbell that is rung next is a release of its own (gba_group_arrive), so
   * whoever is released by the device can see this word too: rule 25. */
  atomic_store_explicit(&words_of(barrier, barrier->local)->word[barrier->k & 1], barrier->k << 2 | vote,
                        memory_order_release);
}

/* Compares sequences, never whole words: rule 26. `votes` are added to. */
static bool all_here(const gba_ompi_barrier_t* barrier, uint64_t k, uint64_t* votes) {
  for (uint32_t local = 0; local < barrier->board->locals; ++local) {
    const uint64_t word = word_at(barrier, local, k);
    if (word >> 2 != k) {
      return false;
    }
    *votes |= word & 3;
  }
  return true;
}

static bool all_there(const gba_ompi_barrier_t* barrier, uint64_t k, uint64_t* votes) {
  if (barrier->far.nodes == 0) {
    return true;
  }
  /* Acquire, pairs with the release in gba_ompi_barrier_heard(): so does what other nodes' members stored before. */
  const uint64_t word = atomic_load_explicit(&barrier->board->node->far[k & 1], memory_order_acquire);
  *votes |= word & 3;
  return word >> 2 == k;
}

/* Relaxed here and in ask_for_words(): it says only that words should be looked at, which are acquired for themselves.
 * A member may pull at any time. */
static bool words_wanted(const gba_ompi_barrier_t* barrier) {
  return atomic_load_explicit(&barrier->board->node->pull, memory_order_relaxed) >= barrier->k;
}

static void ask_for_words(const gba_ompi_barrier_t* barrier, uint64_t k) {
  gba_ompi_word_t* const pull = &barrier->board->node->pull;
  uint64_t last = atomic_load_explicit(pull, memory_order_relaxed);
  while (last < k &&
         !atomic_compare_exchange_weak_explicit(pull, &last, k, memory_order_relaxed, memory_order_relaxed)) {
  }
}

static void pull(gba_ompi_barrier_t* barrier) {
  barrier->pulled = true;
  barrier->off = true;
  ask_for_words(barrier, barrier->k);
}

static void note_trouble(gba_ompi_barrier_t* barrier, int failure, const char* trouble) {
  if (barrier->trouble[0] == '\0') {
    barrier->failure = failure;
    snprintf(barrier->trouble, sizeof(barrier->trouble), "%s", trouble[0] != '\0' ? trouble : strerror(-failure));
  }
}

static void pull_for_others(gba_ompi_barrier_t* barrier) {
  note_trouble(barrier, 0, "another member does not use the device any more");
  pull(barrier);
}

static int finish(gba_ompi_barrier_t* barrier, uint64_t* how) {
  barrier->open = false;
  *how += 1;
  return 0;
}

/* A holder: rings for itself and for those who share its port, once they are all there. No barrier that the device
 * releases has an OFF word (rule 28), so it does not ring for one who says that. */
static void ring(gba_ompi_barrier_t* barrier) {
  for (; barrier->asked < barrier->sharer_count; ++barrier->asked) {
    const uint64_t word = word_at(barrier, barrier->sharers[barrier->asked], barrier->k);
    if (word >> 2 != barrier->k) {
      return;
    }
    if ((word & 3) != GBA_OMPI_ON) {
      pull_for_others(barrier);
      return;
    }
  }
  gba_group_arrive(barrier->group, barrier->k);
  barrier->rung = true;
}

static int ask_device(gba_ompi_barrier_t* barrier, uint64_t max_ns) {
  if (!barrier->rung) {
    ring(barrier);
  }
  if (!barrier->rung) {
    return -EAGAIN;
  }
  int status = gba_group_test(barrier->group, barrier->k);
  if (status == -EAGAIN && max_ns != kLookOnly && !words_wanted(barrier)) {
    status = gba_group_sleep(barrier->group, barrier->k, max_ns);
  }
  if (status == 0) {
    /* Release, pairs with ask_holder(): hands on what the device's release has shown to this member. */
    atomic_store_explicit(&words_of(barrier, barrier->local)->released, barrier->k, memory_order_release);
  }
  return status;
}

static int ask_holder(const gba_ompi_barrier_t* barrier) {
  const uint64_t released = atomic_load_explicit(&words_of(barrier, barrier->holder)->released, memory_order_acquire);
  return released == barrier->k ? 0 : -EAGAIN;
}

/* `max_ns` may be kLookOnly. */
static int look_at_release(gba_ompi_barrier_t* barrier, uint64_t max_ns) {
  const int status = barrier->group != NULL ? ask_device(barrier, max_ns) : ask_holder(barrier);
  if (status == 0) {
    return finish(barrier, &barrier->by_device);
  }
  if (status != -EAGAIN) {
    note_trouble(barrier, status, gba_error_text());
    pull(barrier);
  } else if (!barrier->pulled && words_wanted(barrier)) {
    pull_for_others(barrier);
  }
  return -EAGAIN;
}

static int look_at_words(gba_ompi_barrier_t* barrier) {
  uint64_t votes = 0;
  if (!all_here(barrier, barrier->k, &votes) || !all_there(barrier, barrier->k, &votes)) {
    return -EAGAIN;
  }
  /* Rule 28: with an OFF the device has released nobody from k, so everybody comes by here and finds the same. Words of
   * k stay until all have entered k + 1. */
  barrier->over = (votes & GBA_OMPI_OFF) != 0;
  return finish(barrier, &barrier->by_words);
}

static int look(gba_ompi_barrier_t* barrier, uint64_t max_ns) {
  if (!barrier->pulled && look_at_release(barrier, max_ns) == 0) {
    return 0;
  }
  gba_ompi_barrier_progress(barrier); /* before it is left: other nodes may have asked for it */
  return barrier->pulled ? look_at_words(barrier) : -EAGAIN;
}

void gba_ompi_barrier_start(gba_ompi_barrier_t* barrier) {
  barrier->k += 1;
  barrier->open = true;
  barrier->rung = false;
  barrier->pulled = false;
  barrier->asked = 0;
  publish(barrier);
  if (barrier->off) {
    pull(barrier);
  } else if (barrier->group != NULL) {
    ring(barrier);
  }
}

int gba_ompi_barrier_test(gba_ompi_barrier_t* barrier) {
  return barrier->open ? look(barrier, kLookOnly) : 0;
}

int gba_ompi_barrier_sleep(gba_ompi_barrier_t* barrier, uint64_t max_ns) {
  const uint64_t bounded = max_ns == kLookOnly ? max_ns - 1 : max_ns;
  if (!barrier->open || look(barrier, bounded) == 0) {
    return 0;
  }
  if (barrier->rung && !barrier->pulled) {
    return -EAGAIN; /* it has slept */
  }
  const uint64_t nap = max_ns < kLongestNap ? max_ns : kLongestNap;
  if (nap > 0) {
    nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = (long)nap}, NULL);
  }
  return look(barrier, kLookOnly);
}

void gba_ompi_barrier_turn_off(gba_ompi_barrier_t* barrier, int failure, const char* trouble) {
  note_trouble(barrier, failure, trouble);
  barrier->off = true;
  if (barrier->open && !barrier->pulled) {
    pull(barrier);
  }
}

void gba_ompi_barrier_progress(gba_ompi_barrier_t* barrier) {
  if (!is_leader(barrier)) {
    return;
  }
  const uint64_t asked = atomic_load_explicit(&barrier->board->node->pull, memory_order_relaxed);
  if (asked == 0 || asked + 1 < barrier->k) {
    return;
  }
  /* The barrier before, too: this member may have been released from it where others were not. Nobody needs an older
   * one, since all have arrived at this one's predecessor. */
  for (uint64_t k = barrier->k > 1 ? barrier->k - 1 : 1; k <= barrier->k && k <= asked; ++k) {
    uint64_t votes = 0;
    if (barrier->told[k & 1] < k && all_here(barrier, k, &votes)) {
      barrier->told[k & 1] = k;
      barrier->far.tell(barrier->far.context, k, votes);
    }
  }
}

void gba_ompi_barrier_heard(gba_ompi_barrier_t* barrier, uint64_t k, uint64_t votes) {
  gba_ompi_heard_t* const heard = &barrier->heard[k & 1];
  if (heard->k < k) {
    *heard = (gba_ompi_heard_t){.k = k};
  }
  /* One that is told after its second successor is needed by nobody: all have arrived at the one in between. */
  if (heard->k == k) {
    heard->votes |= votes;
    heard->nodes += 1;
    if (heard->nodes == barrier->far.nodes) {
      /* Release, pairs with all_there(). */
      atomic_store_explicit(&barrier->board->node->far[k & 1], k << 2 | heard->votes, memory_order_release);
    }
  }
  ask_for_words(barrier, k);
}

void gba_ompi_barrier_missing(const gba_ompi_barrier_t* barrier, uint64_t* mask, uint32_t words) {
  memset(mask, 0, words * sizeof(*mask));
  for (uint32_t local = 0; local < barrier->board->locals && local / 64 < words; ++local) {
    if (word_at(barrier, local, barrier->k) >> 2 != barrier->k) {
      mask[local / 64] |= UINT64_C(1) << (local % 64);
    }
  }
}
