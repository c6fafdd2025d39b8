/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_remote.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "gba_wait.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

static const uint64_t kInterval = 500000; /* ns between two runs, which are not for speed */
static const uint64_t kEnd = UINT64_MAX;  /* for k: this node needs no answers any more */

typedef struct content_t {
  uint64_t id, k, votes;
} content_t;

typedef struct gba_ompi_message_t {
  struct gba_ompi_message_t* next;
  int leader;
  content_t content;
  ompi_request_t* request;
} gba_ompi_message_t;

void gba_ompi_remote_add(gba_ompi_channel_t* channel, gba_ompi_remote_group_t* group) {
  group->channel = channel;
  OPAL_THREAD_LOCK(&channel->lock);
  group->next = channel->groups;
  channel->groups = group;
  OPAL_THREAD_UNLOCK(&channel->lock);
}

/* Only queues: it is called where no message may be sent, with the lock of a barrier held. */
void gba_ompi_remote_send(void* context, uint64_t k, uint64_t votes) {
  gba_ompi_remote_group_t* const group = context;
  gba_ompi_channel_t* const channel = group->channel;
  for (uint32_t node = 0; node < group->barrier->remote.nodes; ++node) {
    gba_ompi_message_t* const message = calloc(1, sizeof *message);
    if (message == NULL) {
      abort(); /* the other nodes would wait for ever */
    }
    message->leader = (int)group->leaders[node];
    message->content = (content_t){.id = group->id, .k = k, .votes = votes};
    OPAL_THREAD_LOCK(&channel->lock);
    message->next = channel->queue;
    channel->queue = message;
    OPAL_THREAD_UNLOCK(&channel->lock);
  }
}

void gba_ompi_remote_retire(gba_ompi_remote_group_t* group) {
  /* Release, pairs with progress_group(): from then on the group may be freed. */
  atomic_store_explicit(&group->retired, true, memory_order_release);
}

void gba_ompi_remote_remove(gba_ompi_remote_group_t* group) {
  gba_ompi_channel_t* const channel = group->channel;
  if (channel == NULL) {
    return;
  }
  OPAL_THREAD_LOCK(&channel->lock);
  gba_ompi_remote_group_t** link = &channel->groups;
  while (*link != group) {
    link = &(*link)->next;
  }
  *link = group->next;
  OPAL_THREAD_UNLOCK(&channel->lock);
  group->channel = NULL;
}

bool gba_ompi_remote_needed(gba_ompi_channel_t* channel) {
  OPAL_THREAD_LOCK(&channel->lock);
  const bool needed = channel->groups != NULL || channel->queue != NULL || channel->in_flight != NULL;
  OPAL_THREAD_UNLOCK(&channel->lock);
  return needed;
}

static void send_all(gba_ompi_channel_t* channel) {
  OPAL_THREAD_LOCK(&channel->lock);
  gba_ompi_message_t* message = channel->queue;
  channel->queue = NULL;
  OPAL_THREAD_UNLOCK(&channel->lock);
  while (message != NULL) {
    gba_ompi_message_t* const next = message->next;
    const int error =
        MCA_PML_CALL(isend(&message->content, sizeof message->content, &ompi_mpi_byte.dt, message->leader, channel->tag,
                           MCA_PML_BASE_SEND_STANDARD, &ompi_mpi_comm_world.comm, &message->request));
    if (error != OMPI_SUCCESS) {
      abort(); /* as Open MPI does when it has lost a process */
    }
    message->next = channel->in_flight;
    channel->in_flight = message;
    message = next;
  }
}

static void forget_sent(gba_ompi_channel_t* channel) {
  for (gba_ompi_message_t** link = &channel->in_flight; *link != NULL;) {
    gba_ompi_message_t* const message = *link;
    if (!REQUEST_COMPLETE(message->request)) {
      link = &message->next;
      continue;
    }
    *link = message->next;
    ompi_request_free(&message->request);
    free(message);
  }
}

static gba_ompi_remote_group_t* find(gba_ompi_channel_t* channel, uint64_t id) {
  OPAL_THREAD_LOCK(&channel->lock);
  gba_ompi_remote_group_t* group = channel->groups;
  while (group != NULL && group->id != id) {
    group = group->next;
  }
  OPAL_THREAD_UNLOCK(&channel->lock);
  return group;
}

static void hear(gba_ompi_remote_group_t* group, const content_t* content) {
  if (content->k == kEnd) {
    ++group->finished_nodes;
    return;
  }
  OPAL_THREAD_LOCK(group->lock);
  gba_ompi_barrier_receive(group->barrier, content->k, content->votes);
  OPAL_THREAD_UNLOCK(group->lock);
}

static void receive_all(gba_ompi_channel_t* channel) {
  ompi_communicator_t* const world = &ompi_mpi_comm_world.comm;
  for (;;) {
    int matched = 0;
    content_t content;
    ompi_status_public_t status;
    if (MCA_PML_CALL(iprobe(MPI_ANY_SOURCE, channel->tag, world, &matched, &status)) != OMPI_SUCCESS || !matched) {
      return;
    }
    const int error = MCA_PML_CALL(
        recv(&content, sizeof content, &ompi_mpi_byte.dt, status.MPI_SOURCE, channel->tag, world, MPI_STATUS_IGNORE));
    if (error != OMPI_SUCCESS) {
      return;
    }
    gba_ompi_remote_group_t* const group = find(channel, content.id);
    if (group != NULL) {
      hear(group, &content);
    }
  }
}

static bool all_have_left(const gba_ompi_board_t* board) {
  for (uint32_t local = 0; local < board->locals; ++local) {
    /* Acquire: a member that has left does not read the board after that. */
    if (atomic_load_explicit(&board->members[local].left, memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

static void progress_group(gba_ompi_remote_group_t* group) {
  OPAL_THREAD_LOCK(group->lock);
  gba_ompi_barrier_progress(group->barrier);
  OPAL_THREAD_UNLOCK(group->lock);
  const bool retired = atomic_load_explicit(&group->retired, memory_order_acquire);
  if (retired && !group->sent_end && all_have_left(group->barrier->board)) {
    group->sent_end = true;
    gba_ompi_remote_send(group, kEnd, 0);
  }
}

/* A group that no node needs, or NULL. */
static gba_ompi_remote_group_t* find_ended(gba_ompi_channel_t* channel) {
  OPAL_THREAD_LOCK(&channel->lock);
  gba_ompi_remote_group_t* group = channel->groups;
  while (group != NULL && !(group->sent_end && group->finished_nodes == group->barrier->remote.nodes)) {
    group = group->next;
  }
  OPAL_THREAD_UNLOCK(&channel->lock);
  return group;
}

static void end_group(gba_ompi_remote_group_t* group) {
  gba_ompi_remote_remove(group);
  group->end(group->owner);
}

bool gba_ompi_remote_is_finalized(void) {
  return ompi_mpi_comm_world.comm.c_coll == NULL;
}

void gba_ompi_remote_progress(gba_ompi_channel_t* channel) {
  const uint64_t time = gba_ompi_now();
  if (time < channel->next_run || gba_ompi_remote_is_finalized() || !gba_ompi_remote_needed(channel)) {
    return;
  }
  channel->next_run = time + kInterval;
  receive_all(channel);
  /* Groups are added at the head, and removed by this thread or together with their communicator, which no other thread
   * uses then. */
  OPAL_THREAD_LOCK(&channel->lock);
  gba_ompi_remote_group_t* group = channel->groups;
  OPAL_THREAD_UNLOCK(&channel->lock);
  for (; group != NULL; group = group->next) {
    progress_group(group);
  }
  for (group = find_ended(channel); group != NULL; group = find_ended(channel)) {
    end_group(group);
  }
  send_all(channel);
  forget_sent(channel);
}

void gba_ompi_remote_end(gba_ompi_channel_t* channel) {
  while (channel->groups != NULL) {
    end_group(channel->groups);
  }
  while (channel->queue != NULL) {
    gba_ompi_message_t* const message = channel->queue;
    channel->queue = message->next;
    free(message);
  }
}
