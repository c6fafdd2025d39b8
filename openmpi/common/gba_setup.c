/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_setup.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/util/proc.h"

/* What rounds two and three tell. */
typedef struct answer_t {
  int32_t error;
  gba_group_handle handle; /* of the owner */
  uint64_t id;             /* of the group among all of all devices: the owner's */
} answer_t;
static_assert(sizeof(answer_t) <= GBA_OMPI_EXCHANGE_BYTES && sizeof(gba_ompi_offer_t) == GBA_OMPI_EXCHANGE_BYTES,
              "that is what can be exchanged");

static const opal_proc_t* proc_of(const gba_ompi_party_t* party, int member) {
  return &ompi_comm_peer_lookup(party->comm, party->ranks == NULL ? member : party->ranks[member])->super;
}

static bool is_local(const gba_ompi_party_t* party, int member) {
  return OPAL_PROC_ON_LOCAL_NODE(proc_of(party, member)->proc_flags) || member == party->self;
}

static uint64_t next_id(const gba_ompi_party_t* party) {
  static _Atomic uint32_t last;
  return (uint64_t)proc_of(party, party->self)->proc_name.vpid << 32 | (uint32_t)(atomic_fetch_add(&last, 1) + 1);
}

static int first_holder(const gba_ompi_setup_t* setup) {
  int member = 0;
  while (!gba_ompi_holds(&setup->offers[member])) ++member;
  return member;
}

static int note(gba_ompi_setup_t* setup, int error, const char* text) {
  if (error != 0 && setup->trouble[0] == '\0') {
    snprintf(setup->trouble, sizeof setup->trouble, "%s", text[0] == '\0' ? strerror(-error) : text);
  }
  return error;
}

/* The device and the others can do without this member from here on. */
static void leave(gba_ompi_setup_t* setup) {
  gba_ompi_exchange_end(&setup->exchange);
  (void)gba_group_leave(setup->group);
  setup->group = NULL;
  setup->barrier.group = NULL;
  if (setup->owner) (void)gba_group_free(setup->port->device, &setup->handle);
  setup->owner = false;
}

static void drop(gba_ompi_setup_t* setup) {
  leave(setup);
  gba_ompi_far_remove(&setup->far);
  if (setup->board.node != NULL) gba_ompi_board_close(&setup->board);
  setup->board.node = NULL;
}

static void decide(gba_ompi_setup_t* setup, gba_ompi_reason_t reason, int member, int error) {
  setup->decision = (gba_ompi_decision_t){reason, member, error};
  setup->stage = GBA_OMPI_DECIDED;
  gba_ompi_exchange_end(&setup->exchange);
  if (reason == GBA_OMPI_USED) {
    gba_ompi_board_seal(&setup->board);
  } else {
    drop(setup);
  }
}

static void go_on(gba_ompi_setup_t* setup, gba_ompi_stage_t stage, const void* mine, size_t size) {
  setup->stage = stage;
  const int error = gba_ompi_exchange_begin(&setup->exchange, &setup->party, mine, size);
  if (error != 0) decide(setup, GBA_OMPI_NO_MESSAGE, setup->party.self, error);
}

gba_ompi_setup_t* gba_ompi_setup_new(void) {
  gba_ompi_setup_t* const setup = calloc(1, sizeof *setup);
  if (setup == NULL) return NULL;
  OBJ_CONSTRUCT(&setup->lock, opal_mutex_t);
  setup->board.fd = -1;
  return setup;
}

static void give_back(void* context) {
  gba_ompi_setup_t* const setup = context;
  drop(setup);
  free(setup->leaders);
  free(setup->sharers);
  free(setup->offers);
  OBJ_DESTRUCT(&setup->lock);
  free(setup);
}

void gba_ompi_setup_begin(gba_ompi_setup_t* setup, const gba_ompi_party_t* party, gba_ompi_port_t* port, int port_error,
                          gba_ompi_far_channel_t* channel) {
  setup->channel = channel;
  setup->party = *party;
  setup->port = port;
  gba_ompi_offer_t offer = {.error = note(setup, port_error, port->trouble),
                            .node = -1,
                            .local_rank = (uint32_t)opal_process_info.my_local_rank,
                            .holder = port->holder};
  uint32_t locals = 0;
  for (int member = party->members - 1; member >= 0; --member) {
    if (is_local(party, member)) {
      offer.node = member;
      ++locals;
    }
  }
  if (offer.node == party->self && offer.error == 0) {
    offer.error = note(setup, gba_ompi_board_make(locals, &setup->board, &offer.board), "");
  }
  go_on(setup, GBA_OMPI_OFFERING, &offer, sizeof offer);
}

static void allocate(gba_ompi_setup_t* setup) {
  const int members = setup->party.members;
  setup->offers = malloc((size_t)members * sizeof *setup->offers);
  if (setup->offers == NULL) abort(); /* as Open MPI does: nobody else would learn of it */
  memcpy(setup->offers, gba_ompi_exchange_of(&setup->exchange, 0), (size_t)members * sizeof *setup->offers);
  const gba_ompi_decision_t decision = gba_ompi_decide(setup->offers, members);
  if (decision.reason != GBA_OMPI_USED) {
    decide(setup, decision.reason, decision.member, decision.error);
    return;
  }
  answer_t answer = {.error = 0};
  if (first_holder(setup) == setup->party.self) {
    const uint32_t holders = gba_ompi_holders(setup->offers, members);
    answer.id = next_id(&setup->party);
    answer.error = gba_group_alloc(setup->port->device, holders, 0, &setup->handle);
    setup->owner = answer.error == 0;
    if (setup->owner) answer.error = gba_group_enable(setup->port->device, &setup->handle);
    (void)note(setup, answer.error, gba_error_text());
    answer.handle = setup->handle;
  }
  go_on(setup, GBA_OMPI_ALLOCATING, &answer, sizeof answer);
}

static int open_board(gba_ompi_setup_t* setup) {
  const int leader = setup->offers[setup->party.self].node;
  if (leader == setup->party.self) return 0;
  const uint32_t locals = gba_ompi_locals(setup->offers, setup->party.members, leader);
  return note(setup, gba_ompi_board_open(&setup->offers[leader].board, locals, &setup->board), "");
}

static int fill_barrier(gba_ompi_setup_t* setup) {
  const gba_ompi_offer_t* const offers = setup->offers;
  const int members = setup->party.members;
  const int self = setup->party.self;
  const int node = offers[self].node;
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  setup->sharers = calloc((size_t)members, sizeof *setup->sharers);
  setup->leaders = calloc((size_t)members, sizeof *setup->leaders);
  if (setup->sharers == NULL || setup->leaders == NULL) return note(setup, -ENOMEM, "");
  barrier->board = &setup->board;
  barrier->local = gba_ompi_locals(offers, self, node);
  barrier->holder = gba_ompi_locals(offers, gba_ompi_holder_of(offers, members, self), node);
  barrier->sharers = setup->sharers;
  barrier->sharer_count = gba_ompi_sharers(offers, members, self, setup->sharers);
  barrier->k = setup->handle.sequence;
  barrier->far.nodes = gba_ompi_far_leaders(offers, members, self, setup->leaders);
  return 0;
}

/* A leader can be asked as soon as all members have heard that all have joined. */
static void join_leaders(gba_ompi_setup_t* setup, uint64_t id) {
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  if (barrier->local != 0 || barrier->far.nodes == 0) return;
  for (uint32_t node = 0; node < barrier->far.nodes; ++node) {
    setup->leaders[node] = proc_of(&setup->party, (int)setup->leaders[node])->proc_name.vpid;
  }
  setup->far = (gba_ompi_far_group_t){
      .id = id, .leaders = setup->leaders, .barrier = barrier, .lock = &setup->lock, .end = give_back, .owner = setup};
  barrier->far.context = &setup->far;
  barrier->far.tell = gba_ompi_far_tell;
  gba_ompi_far_add(setup->channel, &setup->far);
}

static int join_group(gba_ompi_setup_t* setup) {
  const int self = setup->party.self;
  if (!gba_ompi_holds(&setup->offers[self])) return 0;
  const int error =
      gba_group_join(setup->port->device, &setup->handle, gba_ompi_holders(setup->offers, self), &setup->group);
  setup->barrier.group = setup->group;
  return note(setup, error, gba_error_text());
}

static void join(gba_ompi_setup_t* setup) {
  const int owner = first_holder(setup);
  const answer_t* const told = gba_ompi_exchange_of(&setup->exchange, owner);
  if (told->error != 0) {
    decide(setup, GBA_OMPI_NO_GROUP, owner, told->error);
    return;
  }
  setup->handle = told->handle;
  answer_t answer = {.error = open_board(setup)};
  if (answer.error == 0) answer.error = fill_barrier(setup);
  if (answer.error == 0) answer.error = join_group(setup);
  if (answer.error == 0) join_leaders(setup, told->id);
  go_on(setup, GBA_OMPI_JOINING, &answer, sizeof answer);
}

static void conclude(gba_ompi_setup_t* setup) {
  for (int member = 0; member < setup->party.members; ++member) {
    const answer_t* const answer = gba_ompi_exchange_of(&setup->exchange, member);
    if (answer->error != 0) {
      decide(setup, GBA_OMPI_NOT_JOINED, member, answer->error);
      return;
    }
  }
  decide(setup, GBA_OMPI_USED, -1, 0);
}

int gba_ompi_setup_progress(gba_ompi_setup_t* setup) {
  while (setup->stage != GBA_OMPI_DECIDED) {
    const int error = gba_ompi_exchange_progress(&setup->exchange);
    if (error == -EAGAIN) return error;
    if (error != 0) {
      decide(setup, GBA_OMPI_NO_MESSAGE, setup->party.self, error);
    } else if (setup->stage == GBA_OMPI_OFFERING) {
      allocate(setup);
    } else if (setup->stage == GBA_OMPI_ALLOCATING) {
      join(setup);
    } else {
      conclude(setup);
    }
  }
  return 0;
}

void gba_ompi_setup_free(gba_ompi_setup_t* setup) {
  if (setup == NULL) return;
  leave(setup);
  const bool used = setup->stage == GBA_OMPI_DECIDED && setup->decision.reason == GBA_OMPI_USED;
  if (used) {
    /* Release, pairs with all_have_left() of the leader: this member does not look at the board after this. */
    atomic_store_explicit(&setup->board.members[setup->barrier.local].left, 1, memory_order_release);
  }
  if (used && setup->far.channel != NULL) {
    gba_ompi_far_retire(&setup->far);
  } else {
    give_back(setup);
  }
}

void gba_ompi_setup_text(const gba_ompi_setup_t* setup, char* text, size_t size) {
  char reason[128];
  if (setup->decision.reason == GBA_OMPI_USED) {
    snprintf(text, size, "the device does the barriers, as group %u of %d members on %u nodes", setup->handle.group,
             setup->party.members, setup->barrier.far.nodes + 1);
  } else {
    gba_ompi_decision_t decision = setup->decision;
    if (setup->party.ranks != NULL && decision.member >= 0) decision.member = setup->party.ranks[decision.member];
    gba_ompi_decision_text(&decision, reason, sizeof reason);
    snprintf(text, size, "the previous module does the barriers: %s", reason);
  }
}
