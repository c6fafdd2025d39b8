/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a group, each a process, that make barriers by the names of documents about components for Open MPI.
 *
 *   document_members gba|switch DEVICE MEMBERS BARRIERS [returns|aborts]
 *
 * Sequences have 32 bits and wrap around on the way. With the last argument member 0 stays away from the last barrier,
 * prints "holding" and waits for its end; the others wait for the release, and end with what they get instead.
 */
#include <coll_switch_barrier.h>
#include <sched.h>
#include <scoll_gba.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_MEMBERS = 16 };
/* Ten barriers before 32 bits are used up. */
static const uint64_t kFirst = UINT32_MAX - UINT64_C(10);

struct shared {
  gba_group_handle handle;
  atomic_int offered;
  atomic_int left;
  atomic_uint arrived[MOST_MEMBERS];
};

struct member {
  int number;
  int members;
  bool by_switch_names;
  const char* lost; /* NULL, or what the others do when the device is lost */
  gba_device_t device;
  gba_group_config_t group_config;
  gba_local_state_t local_state;
  uint32_t barrier_sequence;
};

static void fail(const char* what, int error) {
  fprintf(stderr, "%s: %d: %s\n", what, error, gba_error_text());
  _exit(1);
}

/* Fills in a message, as the documents do, and arrives by what it says. */
static int arrive_by_message(struct member* self, uint32_t sequence) {
  switch_barrier_remote_store_msg_t message;
  memset(&message, 0, sizeof message);
  message.msg_type = SWITCH_BARRIER_MSG_ARRIVE;
  message.group_id = self->group_config.group_id;
  message.member_id = self->group_config.local_member_id;
  message.sequence = sequence;
  message.timestamp = UINT64_MAX;
  message.target_addr = switch_barrier_calc_reg_addr(message.group_id, SWITCH_BARRIER_REG_ARRIVAL_ADDR);
  message.store_value = (uint64_t)message.member_id << 32 | message.sequence;
  if (message.msg_type == SWITCH_BARRIER_MSG_RELEASE || (uint32_t)message.store_value != sequence) {
    fail("the message of an arrival", message.msg_type);
  }
  return switch_barrier_send_arrival(&self->device, message.group_id, message.member_id, message.sequence);
}

static int arrive(struct member* self, uint32_t sequence) {
  return self->by_switch_names ? arrive_by_message(self, sequence)
                               : gba_send_arrival(&self->device, self->group_config.group_id,
                                                  self->group_config.local_member_id, sequence);
}

static bool released(struct member* self, uint32_t sequence) {
  return self->by_switch_names ? switch_barrier_poll_release(&self->local_state, sequence)
                               : gba_poll_release(&self->local_state, sequence);
}

static int barrier(struct member* self) {
  const uint32_t sequence = ++self->barrier_sequence;
  const int ret = arrive(self, sequence);
  if (ret != 0) {
    return ret;
  }
  while (!released(self, sequence)) {
    if (self->local_state.error != 0) {
      return self->local_state.error;
    }
    sched_yield();
  }
  return 0;
}

static void run_barriers(struct member* self, struct shared* shared, unsigned barriers) {
  unsigned k;
  int i;
  for (k = 1; k <= barriers; ++k) {
    int error;
    if (self->lost != NULL && k == barriers && self->number == 0) {
      puts("holding");
      fflush(stdout);
      pause();
    }
    atomic_store(&shared->arrived[self->number], k);
    error = barrier(self);
    if (self->lost != NULL && k == barriers) {
      printf("member %d: error %d\n", self->number, error);
      fflush(stdout);
      _exit(error < 0 ? 0 : 1);
    }
    if (error != 0) {
      fail("barrier", error);
    }
    for (i = 0; i < self->members; ++i) {
      if (atomic_load(&shared->arrived[i]) < k) {
        fail("released before all arrived", (int)k);
      }
    }
  }
  /* One that has been released stays so. */
  if (!released(self, self->barrier_sequence - 1)) {
    fail("an earlier sequence is not released", 0);
  }
}

static void run_member(struct member* self, struct shared* shared, const char* path, unsigned barriers) {
  gba_device* device = NULL;
  gba_group* group = NULL;
  int error = gba_open(path, &device);
  if (error != 0) {
    fail("gba_open", error);
  }
  if (self->number == 0) {
    error = gba_group_alloc(device, (uint32_t)self->members, kFirst, &shared->handle);
    if (error != 0 || gba_group_enable(device, &shared->handle) != 0) {
      fail("gba_group_alloc", error);
    }
    atomic_store(&shared->offered, 1);
  }
  while (atomic_load(&shared->offered) == 0) {
    sched_yield();
  }
  error = gba_group_join(device, &shared->handle, (uint32_t)self->number, &group);
  if (error != 0 || (error = gba_device_from(&self->device, device)) != 0) {
    fail("gba_group_join", error);
  }
  if (gba_send_arrival(&self->device, shared->handle.group, (uint32_t)self->number, 1) != -EINVAL) {
    fail("an arrival without a membership", 0);
  }
  error = gba_member_from(&self->device, &shared->handle, (uint32_t)self->number, group, &self->group_config,
                          &self->local_state);
  if (error != 0 || self->group_config.member_mask[0] != (UINT64_C(1) << self->members) - 1) {
    fail("gba_member_from", error);
  }
  if (gba_send_arrival(&self->device, shared->handle.group, (uint32_t)self->number + 1, 1) != -EINVAL) {
    fail("an arrival as another member", 0);
  }
  self->local_state.errors_return = self->lost == NULL || strcmp(self->lost, "returns") == 0;
  self->barrier_sequence = (uint32_t)shared->handle.sequence;
  run_barriers(self, shared, barriers);
  gba_group_leave(group);
  atomic_fetch_add(&shared->left, 1);
  while (self->number == 0 && atomic_load(&shared->left) < self->members) {
    sched_yield();
  }
  gba_close(device);
}

int main(int argc, char** argv) {
  pid_t pids[MOST_MEMBERS] = {0};
  int status = 0, wrong = 0, i;
  struct shared* shared;
  if (argc < 5 || atoi(argv[3]) < 1 || atoi(argv[3]) > MOST_MEMBERS) {
    return 2;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return 2;
  }
  for (i = 0; i < atoi(argv[3]); ++i) {
    struct member self = {.number = i, .members = atoi(argv[3]), .lost = argc > 5 ? argv[5] : NULL};
    self.by_switch_names = strcmp(argv[1], "switch") == 0;
    pids[i] = fork();
    if (pids[i] == 0) {
      run_member(&self, shared, argv[2], (unsigned)atoi(argv[4]));
      _exit(0);
    }
  }
  for (i = atoi(argv[3]) - 1; i >= 0; --i) {
    if (i == 0 && argc > 5) {
      kill(pids[0], SIGKILL); /* the others have ended */
    }
    waitpid(pids[i], &status, 0);
    wrong += (i != 0 || argc <= 5) && status != 0 ? 1 : 0;
    if (WIFSIGNALED(status) && i != 0) {
      printf("member %d: signal %d\n", i, WTERMSIG(status));
    }
  }
  return wrong != 0;
}
