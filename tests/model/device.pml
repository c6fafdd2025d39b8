// SPDX-License-Identifier: Apache-2.0
// The devices, one for each block of members, each with one group; the ports; and the faults that may occur.
// Only members that hold a port of their own (HOLDS) are members of a group.

#define ERROR 128           // a bit of a flag
bool up[BLOCKS] = true;
bool allocated[BLOCKS];
bool serving[BLOCKS];       // enabled, and not in ERROR
byte released[BLOCKS];      // R
byte highest[BLOCKS];       // the last barrier that any incarnation of the group has released
bool joined[MEMBERS], marked[MEMBERS];
byte slot[MEMBERS];         // doorbell slots: 0, or the sequence of an arrival
byte flag[MEMBERS];
byte restarted;             // MUTANT_RESTART: the barrier that the device calls 0

// ---- The connections to the device
bool connected[MEMBERS];    // the member's connection works
bool unanswered[MEMBERS];   // its arrival or its flag store was lost: another arrival helps

// ---- Faults. If the members that no fault has hit yet are alike, it is enough to try the first of them.
byte faults;                // how many may still occur
byte named;                 // faults may hit members up to this one
#define FAULT(m) (faults > 0 && (m) <= named)
inline blame(m) {
  faults--;
  if
  :: named == m -> named++
  :: else
  fi
}

#define IN_GROUP(m) (HOLDS(m) && BLOCK(m) == g)
#define IF_IN_GROUP(m, step) if :: IN_GROUP(m) -> step :: else fi

inline store_flag(m, value) {
  if
  :: flag[m] = value
  :: FAULT(m) && entered[m] != left[m] -> blame(m); unanswered[m] = true
  fi
}

inline store_error(m, g) {
  if
  :: IN_GROUP(m) && joined[m] -> store_flag(m, ERROR + released[g])
  :: else
  fi
}

inline store_release(m, g) {
  IF_IN_GROUP(m, store_flag(m, released[g]))
}

inline store_release_or_not(m, g) {
  IF_IN_GROUP(m, if :: flag[m] = released[g] :: true fi)
}

inline clear_mark(m, g) {
  IF_IN_GROUP(m, marked[m] = false)
}

inline clear_joined(m, g) {
  IF_IN_GROUP(m, joined[m] = false)
}

inline disconnect(m, g) {
  IF_IN_GROUP(m, joined[m] = false; connected[m] = false; slot[m] = 0)
}

inline fail_group(g) {      // rule 16
  if
  :: serving[g] ->
    serving[g] = false;
    FOR_EACH(clear_mark, g);
    FOR_EACH(store_error, g)
  :: else
  fi
}

inline leave_group(m) {     // rule 24: by command, or because the device has noticed that the port is lost
  if
  :: joined[m] -> joined[m] = false; fail_group(BLOCK(m))
  :: else
  fi
}

inline free_group(g) {      // rule 4
  fail_group(g);
  FOR_EACH(clear_joined, g);
  allocated[g] = false;
  released[g] = 0
}

inline die(g) {
  up[g] = false;
  allocated[g] = false;
  serving[g] = false;
  released[g] = 0;
  FOR_EACH(clear_mark, g);
  FOR_EACH(disconnect, g)
}

#define BARRIER (released[g] + restarted)
#define HAS_ENTERED(m) (BLOCK(m) != g || IN_TWO_PHASES(BARRIER) && !HOLDS(m) || entered[m] >= BARRIER)
#define HAS_PUBLISHED(m) (BLOCK(m) != g || !HAS_WORDS(m) || SEQUENCE_OF_WORD(m, BARRIER) >= NUMBER(BARRIER, m))
#define HAS_VOTED_OFF(m) (BLOCK(m) == g && HAS_WORDS(m) && WORD(m, BARRIER) == SAYS(NUMBER(BARRIER, m), OFF))
#define IS_MARKED(m) (!IN_GROUP(m) || marked[m])

inline release(g) {         // rule 11
  released[g]++;
  FOR_EACH(clear_mark, g);
  assert(ALL(HAS_ENTERED));                 // early release
  assert(ALL(HAS_PUBLISHED));               // so a member that the release does not reach can pull
  assert(!ANY(HAS_VOTED_OFF));              // rule 28
  assert(BARRIER > highest[g]);             // no barrier is released twice
  highest[g] = BARRIER;
  if
  :: FOR_EACH(store_release, g)
  :: faults > 0 ->                          // the device is lost between two of these stores
    faults--;
    FOR_EACH(store_release_or_not, g);
    die(g)
  fi
}

inline take_arrival(m) {    // rules 10 to 13
  arrival = slot[m];
  slot[m] = 0;
  if
  :: !joined[m]
  :: joined[m] && !serving[g] -> store_flag(m, ERROR + released[g])
  :: joined[m] && serving[g] && arrival <= released[g] -> store_flag(m, released[g])
  :: joined[m] && serving[g] && arrival > released[g] ->
    assert(arrival == released[g] + 1);     // rule 13: no arrival is ahead of the device
    marked[m] = true;
    if
    :: ALL(IS_MARKED) -> release(g)
    :: else
    fi
  fi;
  arrival = 0
}

inline lose_member(m) {
  blame(m);
  connected[m] = false;
  if :: slot[m] = 0 :: true fi;             // an arrival under way may be lost, too
  if
  :: true -> leave_group(m)                 // the device has noticed that the port is lost
  :: true -> fail_group(g)                  // rule 34: its link is down, but it is still a member
  fi
}

#define TAKES(m) atomic { IN_GROUP(m) && slot[m] != 0 -> take_arrival(m) }
#define LOSES(m) atomic { IN_GROUP(m) && joined[m] && connected[m] && FAULT(m) -> lose_member(m) }

proctype device(byte g) {
  byte arrival;
end:
  do
  :: TAKES(0)
  :: TAKES(1)
#if MEMBERS > 2
  :: TAKES(2)
#endif
#if MEMBERS > 3
  :: TAKES(3)
#endif
  :: atomic { up[g] && faults > 0 -> faults--; die(g) }
  :: atomic { serving[g] && faults > 0 -> faults--; fail_group(g) }
  :: LOSES(0)
  :: LOSES(1)
#if MEMBERS > 2
  :: LOSES(2)
#endif
#if MEMBERS > 3
  :: LOSES(3)
#endif
  :: atomic { g == 0 && !stopped -> stopped = true; faults = 0; named = 0 }
  od
}

// ---- A member's side of the ports, in barrier n

inline ring() {
  if
  :: connected[me] -> slot[me] = n - restarted; unanswered[me] = false
  :: connected[me] && FAULT(me) -> blame(me); unanswered[me] = true
  :: connected[me] && FAULT(me) -> blame(me); connected[me] = false
  :: !connected[me]
  fi
}

#define FLAG_IS_N ((flag[me] & 127) == n - restarted)
#define FLAG_IS_ERROR (flag[me] >= ERROR && !FLAG_IS_N)
#define PORT_HAS_TROUBLE (FLAG_IS_ERROR || !connected[me] || !joined[me])

// The barrier of this sequence is complete: only the ERROR bit of the flag still matters.
inline forget_flag() {
#ifndef MUTANT_OLD_LINE
  flag[me] = (software[me] -> 0 : flag[me] & ERROR)
#else
  skip
#endif
}

inline leave_and_free() {
  if
  :: software[me] && (joined[me] || OWNS(me) && allocated[BLOCK(me)]) ->
    atomic {
      if
      :: connected[me] ->
        leave_group(me);
        if :: OWNS(me) && allocated[BLOCK(me)] -> free_group(BLOCK(me)) :: else fi
      :: else
      fi
    }
  :: else
  fi
}

// Makes a new connection if the old one is lost. The device may be back, and then knows that the old one is lost.
inline reopen() {
  if :: !up[BLOCK(me)] -> up[BLOCK(me)] = true :: true fi;
  if
  :: up[BLOCK(me)] && !connected[me] ->
    leave_group(me);
    if :: OWNS(me) && allocated[BLOCK(me)] -> free_group(BLOCK(me)) :: else fi;
    connected[me] = true
  :: else
  fi
}

// Rule 30. `sequence` is the barrier before the group's first one.
inline offer(sequence) {
  reopen();
  if
  :: connected[me] ->
    assert(!allocated[BLOCK(me)]);
    allocated[BLOCK(me)] = true;
    serving[BLOCK(me)] = true;
#if defined(MUTANT_RESTART) || defined(MUTANT_OLD_LINE)
    released[BLOCK(me)] = 0;
#else
    released[BLOCK(me)] = sequence;
#endif
    vote = OFFER
  :: true
  fi
}

inline join() {             // rule 31
  reopen();
  if
  :: connected[me] && allocated[BLOCK(me)] ->
    joined[me] = true;
    ready = true;
#ifdef MUTANT_OLD_LINE
    slot[me] = 0
#else
    flag[me] = 0
#endif
  :: true
  fi
}
