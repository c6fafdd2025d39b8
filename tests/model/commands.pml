// SPDX-License-Identifier: Apache-2.0
/* The commands of several ports: BUSY (uapi rule 4), the limit of groups (rule 37), and a port that is reset at any time
 * (rule 24). A command runs at any time after it has been written. Other members join and leave groups at any time, so a
 * group may outlive its owner. The privileged port changes the limit at any time, CHANGES times.
 */

#define PORTS 2
#define GROUPS 3
#ifndef CHANGES
#define CHANGES 1
#endif
#define MOST (GROUPS - 1) /* the highest limit with which one port leaves a group to the others */

mtype = { alloc, free };

/* ---- The device. Ports count from 1; 0: none. */
byte owner[GROUPS];
byte holder[GROUPS];    /* the port that has allocated it, until it is free again */
bool member[GROUPS];    /* a member of another port has joined */
byte limit = MOST;
bool waiting[PORTS + 1]; /* a command has been written and has not run */
bool busy[PORTS + 1];    /* as CMD_STATUS shows it */
mtype command[PORTS + 1];
byte argument[PORTS + 1];
byte outcome[PORTS + 1]; /* 0: refused; a group and 1 */

/* ---- What the program behind a port knows: a bit for each group that it owns */
byte known[PORTS + 1];

#define BIT(g) (1 << (g))
#ifdef MUTANT_COUNT_OWNED
#define COUNTS(g, p) (owner[g] == p -> 1 : 0)
#else
#define COUNTS(g, p) (holder[g] == p -> 1 : 0)
#endif
#define GROUPS_OF(p) (COUNTS(0, p) + COUNTS(1, p) + COUNTS(2, p))
#define HELD(g, p) (holder[g] == p -> 1 : 0)
#define HELD_BY(p) (HELD(0, p) + HELD(1, p) + HELD(2, p))
#define IS_KNOWN(g, p) ((owner[g] == p) == ((known[p] & BIT(g)) != 0))
#define KNOWS_ITS_GROUPS(p) (IS_KNOWN(0, p) && IS_KNOWN(1, p) && IS_KNOWN(2, p))

inline take_group(g, p) {
  owner[g] = p;
  holder[g] = p;
  outcome[p] = g + 1;
#ifndef MUTANT_NO_LIMIT
  assert(HELD_BY(p) <= limit)
#endif
}

inline run_alloc(p) {
  if
  :: holder[0] != 0 && holder[1] != 0 && holder[2] != 0 ->
    assert(HELD_BY(p) > 0); /* one other port cannot take them all */
    outcome[p] = 0
#ifndef MUTANT_NO_LIMIT
  :: (holder[0] == 0 || holder[1] == 0 || holder[2] == 0) && GROUPS_OF(p) >= limit -> outcome[p] = 0
#endif
  :: else ->
    if
    :: holder[0] == 0 -> take_group(0, p)
    :: holder[0] != 0 && holder[1] == 0 -> take_group(1, p)
    :: else -> take_group(2, p)
    fi
  fi
}

inline run_free(g, p) {
  if
  :: owner[g] == p -> owner[g] = 0; holder[g] = 0; member[g] = false; outcome[p] = g + 1
  :: else -> outcome[p] = 0
  fi
}

/* Other members keep a group that is enabled from being freed. */
inline lose_owner(g, p) {
  if
  :: owner[g] == p ->
    owner[g] = 0;
    if :: member[g] -> skip :: else -> holder[g] = 0 fi
  :: else
  fi
}

#define RUNS(p)                                          \
  atomic {                                               \
    waiting[p] ->                                        \
    if                                                   \
    :: command[p] == alloc -> run_alloc(p)               \
    :: command[p] == free -> run_free(argument[p], p)    \
    fi;                                                  \
    waiting[p] = false;                                  \
    busy[p] = false;                                     \
    argument[p] = 0                                      \
  }
#define JOINS(g) atomic { owner[g] != 0 && !member[g] -> member[g] = true }
#define LEAVES(g)                                                    \
  atomic {                                                           \
    member[g] ->                                                     \
    member[g] = false;                                               \
    if :: owner[g] == 0 -> holder[g] = 0 :: else fi                  \
  }

active proctype device() {
  byte changes;
end:
  do
  :: RUNS(1)
  :: RUNS(2)
  :: JOINS(0)
  :: JOINS(1)
  :: JOINS(2)
  :: LEAVES(0)
  :: LEAVES(1)
  :: LEAVES(2)
  :: atomic { changes < CHANGES -> changes++; if :: limit = 1 :: limit = MOST fi }
  od
}

/* ---- A program. Writing CMD is a posted write, which has arrived when CMD_STATUS is read. */
inline write_command(p, what, group) {
  command[p] = what;
  argument[p] = group;
  waiting[p] = true;
#ifndef MUTANT_LATE_BUSY
  busy[p] = true
#endif
}

inline reset_port(p) {
#ifndef MUTANT_RUN_AFTER_RESET
  waiting[p] = false;
  argument[p] = 0;
#endif
  busy[p] = false;
  outcome[p] = 0;
  lose_owner(0, p);
  lose_owner(1, p);
  lose_owner(2, p);
  known[p] = 0;
  pending = 0
}

proctype program(byte p) {
  mtype pending; /* a command whose outcome is not known yet */
  byte group;
end:
  do
  :: atomic { pending == 0 -> pending = alloc; write_command(p, alloc, 0) }
  :: atomic {
       pending == 0 && known[p] != 0 ->
       if
       :: known[p] & BIT(0) -> group = 0
       :: known[p] & BIT(1) -> group = 1
       :: known[p] & BIT(2) -> group = 2
       fi;
       pending = free;
       write_command(p, free, group)
     }
#ifdef MUTANT_TAKE_THE_NEXT
  :: atomic { pending != 0 && waiting[p] -> command[p] = alloc } /* a write while the port is BUSY is dropped */
#endif
  :: atomic {
       pending != 0 && !busy[p] ->
       if
       :: pending == alloc && outcome[p] != 0 -> known[p] = known[p] | BIT(outcome[p] - 1)
       :: pending == alloc && outcome[p] == 0
       :: pending == free -> assert(outcome[p] == group + 1); known[p] = known[p] & ~BIT(group)
       fi;
       assert(KNOWS_ITS_GROUPS(p)); /* the outcome is that of this command */
       pending = 0;
       group = 0;
       outcome[p] = 0
     }
  :: atomic { true -> reset_port(p); group = 0; assert(KNOWS_ITS_GROUPS(p)) }
  od
}

init {
  atomic {
    run program(1);
    run program(2)
  }
}
