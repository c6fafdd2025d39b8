/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_setup.h"

#include <errno.h>
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
} answer_t;

static bool is_local(const gba_ompi_party_t* party, int member) {
  const int rank = party->ranks == NULL ? member : party->ranks[member];
  return OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(party->comm, rank)->super.proc_flags) || member == party->self;
}

static int first_holder(const gba_ompi_setup_t* setup) {
  int member = 0;
  while (setup->offers[member].holder != setup->offers[member].local_rank) ++member;
  return member;
}

static int note(gba_ompi_setup_t* setup, int error, const char* text) {
  if (error != 0 && setup->trouble[0] == '\0') {
    snprintf(setup->trouble, sizeof setup->trouble, "%s", text[0] == '\0' ? strerror(-error) : text);
  }
  return error;
}

static void decide(gba_ompi_setup_t* setup, gba_ompi_reason_t reason, int member, int error) {
  setup->decision = (gba_ompi_decision_t){reason, member, error};
  setup->stage = GBA_OMPI_DECIDED;
  gba_ompi_exchange_end(&setup->exchange);
  if (reason == GBA_OMPI_USED) {
    gba_ompi_board_seal(&setup->board);
  } else {
    gba_ompi_setup_end(setup);
  }
}

static void go_on(gba_ompi_setup_t* setup, gba_ompi_stage_t stage, const void* mine, size_t size) {
  setup->stage = stage;
  const int error = gba_ompi_exchange_begin(&setup->exchange, &setup->party, mine, size);
  if (error != 0) decide(setup, GBA_OMPI_NO_MESSAGE, setup->party.self, error);
}

void gba_ompi_setup_begin(gba_ompi_setup_t* setup, const gba_ompi_party_t* party, gba_ompi_port_t* port,
                          int port_error) {
  setup->party = *party;
  setup->port = port;
  setup->board.fd = -1;
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
    uint32_t holders = 0;
    for (int member = 0; member < members; ++member) {
      holders += setup->offers[member].holder == setup->offers[member].local_rank;
    }
    answer.error = gba_group_alloc(setup->port->device, holders, 0, &setup->handle);
    setup->owner = answer.error == 0;
    if (setup->owner) answer.error = gba_group_enable(setup->port->device, &setup->handle);
    (void)note(setup, answer.error, gba_error_text());
    answer.handle = setup->handle;
  }
  go_on(setup, GBA_OMPI_ALLOCATING, &answer, sizeof answer);
}

/* This member's place among those of its node, and who shares its port. */
static int fill_barrier(gba_ompi_setup_t* setup) {
  const gba_ompi_offer_t* const offers = setup->offers;
  const int self = setup->party.self;
  const int holder = gba_ompi_holder_of(offers, setup->party.members, self);
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  memset(barrier, 0, sizeof *barrier);
  setup->sharers = calloc((size_t)setup->party.members, sizeof *setup->sharers);
  if (setup->sharers == NULL) return -ENOMEM;
  uint32_t place = 0;
  for (int member = 0; member < setup->party.members; ++member) {
    if (offers[member].node != offers[self].node) continue;
    if (member == self) barrier->local = place;
    if (member == holder) barrier->holder = place;
    if (member != self && gba_ompi_holder_of(offers, setup->party.members, member) == self) {
      setup->sharers[barrier->sharer_count++] = place;
    }
    ++place;
  }
  barrier->board = &setup->board;
  barrier->sharers = setup->sharers;
  barrier->k = setup->handle.sequence;
  return 0;
}

static int open_board(gba_ompi_setup_t* setup) {
  const int leader = setup->offers[setup->party.self].node;
  if (leader == setup->party.self) return 0;
  uint32_t locals = 0;
  for (int member = 0; member < setup->party.members; ++member) locals += setup->offers[member].node == leader;
  return gba_ompi_board_open(&setup->offers[leader].board, locals, &setup->board);
}

static int join_group(gba_ompi_setup_t* setup) {
  const int self = setup->party.self;
  uint32_t number = 0;
  for (int member = 0; member < self; ++member) {
    number += setup->offers[member].holder == setup->offers[member].local_rank;
  }
  if (setup->offers[self].holder != setup->offers[self].local_rank) return 0;
  const int error = gba_group_join(setup->port->device, &setup->handle, number, &setup->group);
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
  answer_t answer = {.error = note(setup, open_board(setup), "")};
  if (answer.error == 0) answer.error = note(setup, fill_barrier(setup), "");
  if (answer.error == 0) answer.error = join_group(setup);
  setup->barrier.group = setup->group;
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

void gba_ompi_setup_end(gba_ompi_setup_t* setup) {
  gba_ompi_exchange_end(&setup->exchange);
  (void)gba_group_leave(setup->group);
  setup->group = NULL;
  if (setup->owner) (void)gba_group_free(setup->port->device, &setup->handle);
  setup->owner = false;
  if (setup->board.node != NULL) gba_ompi_board_close(&setup->board);
  free(setup->sharers);
  free(setup->offers);
  setup->sharers = NULL;
  setup->offers = NULL;
}
