/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A router that balances blocks between the members of an exchange, without a collective call. Members are processes
 * that publish blocks of sequences. The router lists what they have, plans which sequence shall be where, and publishes
 * each member's part of the plan as a block of its own. A member pulls and publishes what it shall get: a replica. It
 * withdraws what it shall give away as soon as another member has it: eviction. Some member always has each block.
 *
 * exchange_router [MEMBERS [SEQUENCES]]
 */
#include <shmemx.h>
#include <shmemx_exchange.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  BLOCK = 16384,
  BLOCKS = 4,
  MOST_MEMBERS = 8,
  MOST_SEQUENCES = 200,
  MOST_BLOCKS = MOST_SEQUENCES * BLOCKS,
  TRIES = 60000
};
enum { KEY = 32, MOST_TEXT = MOST_BLOCKS * KEY }; /* of a part of the plan: a line for each key */

static char exchange_name[32];

/* Ends this process unless `result` is a number or 0. */
static int must(const char* what, int result) {
  if (result < 0) {
    fprintf(stderr, "exchange_router: %s: %s\n", what, shmemx_error_text());
    exit(1);
  }
  return result;
}

static void pause_a_moment(int* tries, const char* what) {
  const struct timespec moment = {0, 1000000};
  if (++*tries > TRIES) {
    fprintf(stderr, "exchange_router: timed out waiting for %s\n", what);
    exit(1);
  }
  nanosleep(&moment, NULL);
}

static shmemx_exchange_key_t key_of(const char* text) {
  const shmemx_exchange_key_t key = {text, strlen(text)};
  return key;
}

/* Publishes `bytes` at `offset` of a region. */
static void publish(shmemx_exchange_t* exchange, uint32_t region, const char* key, size_t offset, size_t bytes) {
  shmemx_exchange_entry_t entry = {key_of(key), region, 0, offset, bytes, 1};
  if (must("publish", shmemx_exchange_publish(exchange, &entry, 1)) != 1) {
    fprintf(stderr, "exchange_router: cannot publish %s: error %d\n", key, entry.status);
    exit(1);
  }
}

static int find(shmemx_exchange_t* exchange, const char* text, shmemx_exchange_block_t* block) {
  const shmemx_exchange_key_t key = key_of(text);
  return must("find", shmemx_exchange_find(exchange, &key, 1, 1, 0, block));
}

/* The byte that all bytes of a block are, and that readers check. */
static unsigned char content_of(const char* key) {
  unsigned sum = 7;
  for (; *key != '\0'; ++key) {
    sum = sum * 31 + (unsigned char)*key;
  }
  return (unsigned char)(sum % 251 + 1);
}

/* ---- A member ---- */

/* The blocks of a member: slot i of its memory has the block of keys[i]; "" if it is free. */
typedef struct {
  shmemx_exchange_t* exchange;
  shmemx_memory_t memory;
  uint32_t region;
  char keys[MOST_BLOCKS][KEY];
} Member;

static unsigned char* slot_of(const Member* me, int slot) {
  return (unsigned char*)me->memory.address + (size_t)slot * BLOCK;
}

static int slot_with(const Member* me, const char* key) {
  for (int slot = 0; slot < MOST_BLOCKS; ++slot) {
    if (strcmp(me->keys[slot], key) == 0) {
      return slot;
    }
  }
  return -1;
}

static void publish_slot(Member* me, int slot, const char* key) {
  snprintf(me->keys[slot], KEY, "%s", key);
  publish(me->exchange, me->region, key, (size_t)slot * BLOCK, BLOCK);
}

/* Pulls a block into a free slot, and publishes it: from now on there are two members that have it. */
static void replicate(Member* me, const char* key) {
  const int slot = slot_with(me, "");
  void* to = slot_of(me, slot);
  shmemx_exchange_block_t block;
  if (find(me->exchange, key, &block) != 1 || block.bytes != BLOCK) {
    fprintf(stderr, "exchange_router: no member has %s\n", key);
    exit(1);
  }
  must("pull", shmemx_exchange_pull(me->exchange, &block, &to, 1, NULL, NULL));
  for (size_t i = 0; i < BLOCK; ++i) {
    if (slot_of(me, slot)[i] != content_of(key)) {
      fprintf(stderr, "exchange_router: %s has wrong bytes\n", key);
      exit(1);
    }
  }
  publish_slot(me, slot, key);
}

/* Withdraws a block once another member has it. Then its memory may be used again. */
static void evict(Member* me, const char* key) {
  shmemx_exchange_block_t block;
  for (int tries = 0; find(me->exchange, key, &block) != 1;) {
    pause_a_moment(&tries, "a replica");
  }
  const shmemx_exchange_key_t name = key_of(key);
  must("withdraw", shmemx_exchange_withdraw(me->exchange, &name, 1, UINT64_MAX));
  me->keys[slot_with(me, key)][0] = '\0';
}

/* Executes this member's part of the plan: lines of '+' and a key that it shall get, or '-' and one to give away. First
 * what it gets, so that no two members wait for each other. */
static void execute(Member* me, const char* plan) {
  const char signs[] = "+-";
  for (int pass = 0; pass < 2; ++pass) {
    char key[KEY];
    for (const char* line = plan; *line != '\0'; line = strchr(line, '\n') + 1) {
      if (line[0] == signs[pass] && sscanf(line + 1, "%31s", key) == 1) {
        pass == 0 ? replicate(me, key) : evict(me, key);
      }
    }
  }
}

/* Most sequences are of the first member. */
static int first_owner(int sequence, int members) {
  return sequence % 4 == 0 ? sequence / 4 % members : 0;
}

static void run_member(int number, int members, int sequences) {
  Member* const me = calloc(1, sizeof *me);
  if (me == NULL) {
    exit(1);
  }
  must("open", shmemx_exchange_open(exchange_name, NULL, &me->exchange));
  me->memory.bytes = (size_t)MOST_BLOCKS * BLOCK; /* pages are taken when they are used */
  me->memory.fd = -1;
  must("register", shmemx_exchange_register(me->exchange, &me->memory, &me->region));
  int slot = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    for (int i = 0; first_owner(sequence, members) == number && i < BLOCKS; ++i) {
      char key[KEY];
      snprintf(key, sizeof key, "sequence%d/%d", sequence, i);
      memset(slot_of(me, slot), content_of(key), BLOCK);
      publish_slot(me, slot++, key);
    }
  }
  shmemx_exchange_stats_t stats;
  must("stats", shmemx_exchange_stats(me->exchange, &stats));
  char mine[KEY];
  snprintf(mine, sizeof mine, "plan/%llx", (unsigned long long)stats.id);
  shmemx_exchange_block_t block;
  for (int tries = 0; find(me->exchange, mine, &block) != 1;) {
    pause_a_moment(&tries, "the plan");
  }
  char* const plan = calloc(1, block.bytes + 1);
  void* to = plan;
  if (plan == NULL) {
    exit(1);
  }
  must("pull", shmemx_exchange_pull(me->exchange, &block, &to, 1, NULL, NULL));
  execute(me, plan);
  for (int tries = 0; find(me->exchange, "end", &block) != 1;) {
    pause_a_moment(&tries, "the end");
  }
  shmemx_exchange_close(me->exchange);
  exit(0);
}

/* ---- The router ---- */

/* What the members have: a load for each sequence. */
typedef struct {
  shmemx_exchange_share_t members[MOST_MEMBERS];
  int member_count;
  shmemx_exchange_name_t names[MOST_BLOCKS * 2];
  shmemx_exchange_key_t keys[MOST_SEQUENCES][BLOCKS * 2];
  shmemx_exchange_load_t loads[MOST_SEQUENCES];
  int scattered[MOST_SEQUENCES]; /* more than one member has blocks of it */
  int blocks;
} View;

/* Reads the directories of all members. */
static void look(shmemx_exchange_t* exchange, View* view, int sequences) {
  shmemx_exchange_member_t members[MOST_MEMBERS];
  shmemx_exchange_block_t block;
  view->member_count = must("members", shmemx_exchange_members(exchange, members, MOST_MEMBERS));
  view->blocks = 0;
  memset(view->loads, 0, sizeof view->loads);
  memset(view->scattered, 0, sizeof view->scattered);
  for (int i = 0; i < view->member_count; ++i) {
    const shmemx_exchange_share_t share = {members[i].id, MOST_BLOCKS, 1, 0};
    view->members[i] = share;
    uint64_t cursor = 0;
    shmemx_exchange_name_t* name = &view->names[view->blocks];
    while (must("list", shmemx_exchange_list(exchange, members[i].seat, &cursor, name, &block, 1)) == 1) {
      int sequence = -1;
      char text[SHMEMX_EXCHANGE_MOST_KEY_BYTES + 1] = "";
      memcpy(text, name->data, name->bytes);
      if (sscanf(text, "sequence%d/", &sequence) == 1 && sequence >= 0 && sequence < sequences) {
        shmemx_exchange_load_t* const load = &view->loads[sequence];
        const shmemx_exchange_key_t key = {name->data, name->bytes};
        if (load->count == BLOCKS * 2 || view->blocks + 1 == MOST_BLOCKS * 2) {
          break; /* more replicas than a plan makes: look again */
        }
        view->keys[sequence][load->count++] = key;
        load->keys = view->keys[sequence];
        view->scattered[sequence] |= load->count > 1 && load->member != members[i].id;
        load->member = members[i].id;
        load->load += block.bytes;
        name = &view->names[++view->blocks];
      }
    }
  }
}

static int has_all(const View* view, int members, int sequences) {
  return view->member_count == members && view->blocks == sequences * BLOCKS;
}

static void print_loads(const char* when, const View* view, int sequences) {
  printf("%s:", when);
  for (int i = 0; i < view->member_count; ++i) {
    int count = 0;
    for (int sequence = 0; sequence < sequences; ++sequence) {
      count += view->loads[sequence].member == view->members[i].member ? 1 : 0;
    }
    printf(" %3d", count);
  }
  printf(" sequences\n");
}

/* Publishes each member's part of the plan. */
static void publish_plan(shmemx_exchange_t* exchange, const View* view, const shmemx_exchange_move_t* moves,
                         int count) {
  for (int i = 0; i < view->member_count; ++i) {
    const uint64_t member = view->members[i].member;
    shmemx_memory_t memory = {NULL, MOST_TEXT, -1, 0};
    uint32_t region = 0;
    must("register", shmemx_exchange_register(exchange, &memory, &region));
    char* const text = memory.address;
    size_t length = 0;
    text[length++] = '\n'; /* a block has at least one byte */
    for (int m = 0; m < count; ++m) {
      const shmemx_exchange_key_t* const key = &view->loads[moves[m].load].keys[moves[m].key];
      if (moves[m].to == member || moves[m].from == member) {
        length += (size_t)snprintf(text + length, MOST_TEXT - length, "%c%.*s\n", moves[m].to == member ? '+' : '-',
                                   (int)key->bytes, (const char*)key->data);
      }
    }
    char name[KEY];
    snprintf(name, sizeof name, "plan/%llx", (unsigned long long)member);
    publish(exchange, region, name, 0, length);
  }
}

static int run_router(int members, int sequences) {
  shmemx_exchange_t* exchange;
  View* const view = calloc(1, sizeof *view);
  shmemx_exchange_move_t* const moves = calloc(MOST_BLOCKS, sizeof *moves);
  if (view == NULL || moves == NULL) {
    return 1;
  }
  must("open", shmemx_exchange_open(exchange_name, NULL, &exchange));
  int tries = 0;
  for (look(exchange, view, sequences); !has_all(view, members, sequences); look(exchange, view, sequences)) {
    pause_a_moment(&tries, "the members");
  }
  print_loads("before", view, sequences);
  const int count = must("plan", shmemx_exchange_plan(view->members, (size_t)members, view->loads, (size_t)sequences, 0,
                                                      moves, MOST_BLOCKS));
  uint64_t planned[MOST_SEQUENCES];
  for (int i = 0; i < sequences; ++i) {
    planned[i] = view->loads[i].to;
  }
  publish_plan(exchange, view, moves, count);
  /* The plan has been executed when each sequence is where it shall be, and nowhere else. */
  for (int right = -1; right != sequences;) {
    pause_a_moment(&tries, "what is planned");
    look(exchange, view, sequences);
    right = has_all(view, members, sequences) ? 0 : -1;
    for (int i = 0; right >= 0 && i < sequences; ++i) {
      const int is_there = view->loads[i].member == planned[i] && view->loads[i].count == BLOCKS;
      right += is_there && !view->scattered[i] ? 1 : 0;
    }
  }
  print_loads("after", view, sequences);
  printf("%d blocks of %d bytes moved\n", count, BLOCK);
  shmemx_memory_t memory = {NULL, 1, -1, 0};
  uint32_t region = 0;
  must("register", shmemx_exchange_register(exchange, &memory, &region));
  publish(exchange, region, "end", 0, 1);
  int errors = 0;
  for (int status = 0; wait(&status) > 0;) {
    errors += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  shmemx_exchange_close(exchange);
  printf(errors == 0 ? "exchange_router: correct\n" : "exchange_router: WRONG, %d members failed\n", errors);
  return errors == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const int members = argc > 1 ? atoi(argv[1]) : 4;
  const int sequences = argc > 2 ? atoi(argv[2]) : 40;
  if (members < 1 || members > MOST_MEMBERS || sequences < 1 || sequences > MOST_SEQUENCES) {
    fprintf(stderr, "Usage: %s [MEMBERS, up to %d [SEQUENCES, up to %d]]\n", argv[0], MOST_MEMBERS, MOST_SEQUENCES);
    return 2;
  }
  snprintf(exchange_name, sizeof exchange_name, "router-%d", (int)getpid());
  for (int i = 0; i < members; ++i) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* no member outlives the router */
      run_member(i, members, sequences);
    }
  }
  return run_router(members, sequences);
}
