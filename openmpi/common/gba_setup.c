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

/* The bytes of rounds two and three. */
typedef struct answer_t {
  int32_t error;
  gba_group_handle handle; /* of the owner */
  uint64_t id;             /* of the group among all of all devices: the owner's */
} answer_t;
static_assert(sizeof(answer_t) <= GBA_OMPI_EXCHANGE_BYTES && sizeof(gba_ompi_offer_t) == GBA_OMPI_EXCHANGE_BYTES,
              "fit into an exchange");

static const opal_proc_t* proc_of(const gba_ompi_team_t* team, int member) {
  return &ompi_comm_peer_lookup(team->comm, team->ranks == NULL ? member : team->ranks[member])->super;
}

static bool is_local(const gba_ompi_team_t* team, int member) {
  return OPAL_PROC_ON_LOCAL_NODE(proc_of(team, member)->proc_flags) || member == team->self;
}

static uint64_t next_id(const gba_ompi_team_t* team) {
  static _Atomic uint32_t last;
  return (uint64_t)proc_of(team, team->self)->proc_name.vpid << 32 | (uint32_t)(atomic_fetch_add(&last, 1) + 1);
}

static int first_holder(const gba_ompi_setup_t* setup) {
  int member = 0;
  while (!gba_ompi_holds(&setup->offers[member])) {
    ++member;
  }
  return member;
}

static int note_error(gba_ompi_setup_t* setup, int error, const char* text) {
  if (error != 0 && setup->trouble[0] == '\0') {
    snprintf(setup->trouble, sizeof setup->trouble, "%s", text[0] == '\0' ? strerror(-error) : text);
  }
  return error;
}

static void release_parts(gba_ompi_setup_t* setup) {
  gba_ompi_exchange_end(&setup->exchange);
  gba_ompi_barrier_end(&setup->barrier);
  gba_ompi_remote_remove(&setup->remote);
  if (setup->board.node != NULL) {
    gba_ompi_board_close(&setup->board);
  }
  setup->board.node = NULL;
}

static void decide(gba_ompi_setup_t* setup, gba_ompi_reason_t reason, int member, int error) {
  setup->decision = (gba_ompi_decision_t){reason, member, error};
  setup->stage = GBA_OMPI_DECIDED;
  gba_ompi_exchange_end(&setup->exchange);
  if (reason == GBA_OMPI_USED) {
    gba_ompi_board_seal(&setup->board);
    gba_ompi_barrier_begin(&setup->barrier, setup->handle.sequence);
  } else {
    release_parts(setup);
  }
}

static void begin_round(gba_ompi_setup_t* setup, gba_ompi_stage_t stage, const void* mine, size_t size) {
  setup->stage = stage;
  const int error = gba_ompi_exchange_begin(&setup->exchange, &setup->team, mine, size);
  if (error != 0) {
    decide(setup, GBA_OMPI_NO_MESSAGE, setup->team.self, error);
  }
}

gba_ompi_setup_t* gba_ompi_setup_new(void) {
  gba_ompi_setup_t* const setup = calloc(1, sizeof *setup);
  if (setup == NULL) {
    return NULL;
  }
  OBJ_CONSTRUCT(&setup->lock, opal_mutex_t);
  setup->board.fd = -1;
  return setup;
}

static void destroy(void* context) {
  gba_ompi_setup_t* const setup = context;
  release_parts(setup);
  free(setup->leaders);
  free(setup->sharers);
  free(setup->offers);
  OBJ_DESTRUCT(&setup->lock);
  free(setup);
}

void gba_ompi_setup_begin(gba_ompi_setup_t* setup, const gba_ompi_team_t* team, gba_ompi_port_t* port, int port_error,
                          gba_ompi_channel_t* channel) {
  setup->channel = channel;
  setup->team = *team;
  setup->port = port;
  gba_ompi_offer_t offer = {.error = note_error(setup, port_error, port->trouble),
                            .node = -1,
                            .local_rank = (uint32_t)opal_process_info.my_local_rank,
                            .holder = port->holder};
  uint32_t locals = 0;
  for (int member = team->members - 1; member >= 0; --member) {
    if (is_local(team, member)) {
      offer.node = member;
      ++locals;
    }
  }
  if (offer.node == team->self && offer.error == 0) {
    offer.error = note_error(setup, gba_ompi_board_make(locals, &setup->board, &offer.board), "");
  }
  begin_round(setup, GBA_OMPI_OFFERING, &offer, sizeof offer);
}

static int open_board(gba_ompi_setup_t* setup) {
  const int leader = setup->offers[setup->team.self].node;
  if (leader == setup->team.self) {
    return 0;
  }
  const uint32_t locals = gba_ompi_locals(setup->offers, setup->team.members, leader);
  return note_error(setup, gba_ompi_board_open(&setup->offers[leader].board, locals, &setup->board), "");
}

static int make_barrier(gba_ompi_setup_t* setup) {
  const gba_ompi_offer_t* const offers = setup->offers;
  const int members = setup->team.members;
  const int self = setup->team.self;
  const int node = offers[self].node;
  setup->sharers = calloc((size_t)members, sizeof *setup->sharers);
  setup->leaders = calloc((size_t)members, sizeof *setup->leaders);
  if (setup->sharers == NULL || setup->leaders == NULL) {
    return note_error(setup, -ENOMEM, "");
  }
  const bool holds = gba_ompi_holds(&offers[self]);
  const gba_ompi_place_t place = {.local = gba_ompi_locals(offers, self, node),
                                  .holder = gba_ompi_locals(offers, gba_ompi_holder_of(offers, members, self), node),
                                  .sharers = setup->sharers,
                                  .sharer_count = gba_ompi_sharers(offers, members, self, setup->sharers),
                                  .port = holds ? setup->port->port : NULL,
                                  .ports = gba_ompi_holders(offers, members),
                                  .port_number = holds ? gba_ompi_holders(offers, self) : 0};
  const gba_ompi_remote_t remote = {.context = &setup->remote,
                                    .nodes = gba_ompi_remote_leaders(offers, members, self, setup->leaders),
                                    .send = gba_ompi_remote_send};
  return note_error(setup, gba_ompi_barrier_make(&setup->barrier, &setup->board, &place, &remote), gba_error_text());
}

static void allocate(gba_ompi_setup_t* setup) {
  const int members = setup->team.members;
  setup->offers = malloc((size_t)members * sizeof *setup->offers);
  if (setup->offers == NULL) {
    abort(); /* as Open MPI does: the other members would not learn of it */
  }
  memcpy(setup->offers, gba_ompi_exchange_of(&setup->exchange, 0), (size_t)members * sizeof *setup->offers);
  const gba_ompi_decision_t decision = gba_ompi_decide(setup->offers, members);
  if (decision.reason != GBA_OMPI_USED) {
    decide(setup, decision.reason, decision.member, decision.error);
    return;
  }
  setup->error = open_board(setup);
  if (setup->error == 0) {
    setup->error = make_barrier(setup);
  }
  answer_t answer = {.error = 0};
  if (first_holder(setup) == setup->team.self) {
    answer.id = next_id(&setup->team);
    answer.error = setup->error;
    if (answer.error == 0) {
      answer.error = note_error(setup, gba_barrier_offer(setup->barrier.lossless, 0, &setup->handle), gba_error_text());
    }
    answer.handle = setup->handle;
  }
  begin_round(setup, GBA_OMPI_ALLOCATING, &answer, sizeof answer);
}

/* Other leaders can ask as soon as all members know that all have joined. */
static void join_leaders(gba_ompi_setup_t* setup, uint64_t id) {
  gba_ompi_barrier_t* const barrier = &setup->barrier;
  if (barrier->local != 0 || barrier->remote.nodes == 0) {
    return;
  }
  for (uint32_t node = 0; node < barrier->remote.nodes; ++node) {
    setup->leaders[node] = proc_of(&setup->team, (int)setup->leaders[node])->proc_name.vpid;
  }
  setup->remote = (gba_ompi_remote_group_t){
      .id = id, .leaders = setup->leaders, .barrier = barrier, .lock = &setup->lock, .end = destroy, .owner = setup};
  gba_ompi_remote_add(setup->channel, &setup->remote);
}

static void join(gba_ompi_setup_t* setup) {
  const int owner = first_holder(setup);
  const answer_t* const offered = gba_ompi_exchange_of(&setup->exchange, owner);
  if (offered->error != 0) {
    decide(setup, GBA_OMPI_NO_GROUP, owner, offered->error);
    return;
  }
  setup->handle = offered->handle;
  answer_t answer = {.error = setup->error};
  if (answer.error == 0) {
    answer.error = note_error(setup, gba_barrier_join(setup->barrier.lossless, &setup->handle), gba_error_text());
  }
  if (answer.error == 0) {
    join_leaders(setup, offered->id);
  }
  begin_round(setup, GBA_OMPI_JOINING, &answer, sizeof answer);
}

static void conclude(gba_ompi_setup_t* setup) {
  for (int member = 0; member < setup->team.members; ++member) {
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
    if (error == -EAGAIN) {
      return error;
    }
    if (error != 0) {
      decide(setup, GBA_OMPI_NO_MESSAGE, setup->team.self, error);
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
  if (setup == NULL) {
    return;
  }
  /* The device and the other members do not need this member from here on. */
  gba_ompi_exchange_end(&setup->exchange);
  gba_ompi_barrier_end(&setup->barrier);
  const bool used = setup->stage == GBA_OMPI_DECIDED && setup->decision.reason == GBA_OMPI_USED;
  if (used) {
    /* Release, pairs with all_have_left() of the leader: this member does not read the board after this. */
    atomic_store_explicit(&setup->board.members[setup->barrier.local].left, 1, memory_order_release);
  }
  if (used && setup->remote.channel != NULL) {
    gba_ompi_remote_retire(&setup->remote);
  } else {
    destroy(setup);
  }
}

void gba_ompi_setup_text(const gba_ompi_setup_t* setup, char* text, size_t size) {
  char reason[128];
  if (setup->decision.reason == GBA_OMPI_USED) {
    const unsigned nodes = setup->barrier.remote.nodes + 1;
    snprintf(text, size, "the device does the barriers, as group %u of %d members on %u node%s", setup->handle.group,
             setup->team.members, nodes, nodes == 1 ? "" : "s");
  } else {
    gba_ompi_decision_t decision = setup->decision;
    if (setup->team.ranks != NULL && decision.member >= 0) {
      decision.member = setup->team.ranks[decision.member];
    }
    gba_ompi_decision_text(&decision, reason, sizeof reason);
    snprintf(text, size, "the previous module does the barriers: %s", reason);
  }
}
