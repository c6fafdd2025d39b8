// SPDX-License-Identifier: Apache-2.0
// The barrier protocol of uapi/README.md, rules 9-18 and 25-33: one group of the device, three members, the words that
// they publish, and what may befall the device and the ways to it. README.md beside this file says what is left out, and
// why what is one step here may be one.

#define MEMBERS 3
#ifndef FIRST
#define FIRST 0             // the barrier before the first one
#endif
#ifndef LAST
#define LAST 4              // the last barrier
#endif
#ifndef FAULTS
#define FAULTS 2            // how many things go wrong, at most
#endif
#ifndef P
#define P 2                 // rule 29
#endif

#define ALL(condition) (condition(0) && condition(1) && condition(2))
#define ANY(condition) (condition(0) || condition(1) || condition(2))

// ---- Published words, rule 25
#define ON 0
#define OFF 1
#define PULL 2              // in a round of the device
#define OFFER 2             // in a check round
#define READY 3
#ifdef MUTANT_ONE_SLOT
#define WORD(m, n) word[m]
#else
#define WORD(m, n) word[2 * (m) + (n) % 2]
#endif
#define SEQUENCE_OF_WORD(m, n) (WORD(m, n) / 4)
#define SAYS(n, vote) ((n) * 4 + (vote))
byte word[2 * MEMBERS];

// ---- The members, as the checks see them
byte entered[MEMBERS];      // the last barrier that was entered
byte left[MEMBERS];         // the last barrier that was left
bool software[MEMBERS];     // the next barrier is software's
bool stopped;               // nothing goes wrong any more, and nobody is the first to enter a barrier

// ---- The device. A group that is allocated anew takes the place of the old one, doorbell slots included.
#define ERROR 128           // of a flag
bool up = true;
bool allocated;
bool serving;               // enabled, and not in ERROR
byte released;              // R
bool joined[MEMBERS], marked[MEMBERS];
byte slot[MEMBERS];         // doorbell slots: 0, or the sequence of an arrival
byte flag[MEMBERS];
byte base;                  // MUTANT_RESTART: the barrier that the device calls 0
byte highest;               // that any incarnation of the group has released

// ---- The ways to it
bool connected[MEMBERS];    // the member's connection works
bool unanswered[MEMBERS];   // an arrival or a flag was lost that it waits for: arriving again helps

// ---- What goes wrong. Members that no fault has hit yet are alike, but for member 0 where it makes offers: it is enough
// to try the first of them.
byte faults;                // that are still to come
byte named;                 // members up to this one may be hit
#define FAULT(m) (faults > 0 && (m) <= named)
inline blame(m) {
  faults--;
  if
  :: named == m -> named++
  :: else
  fi
}

inline store_flag(m, value) {
  if
  :: flag[m] = value
  :: FAULT(m) && entered[m] != left[m] -> blame(m); unanswered[m] = true
  fi
}

inline store_error(m) {
  if
  :: joined[m] -> store_flag(m, ERROR + released)
  :: else
  fi
}

inline clear_marks() {
  marked[0] = false; marked[1] = false; marked[2] = false
}

inline clear_joined() {
  joined[0] = false; joined[1] = false; joined[2] = false
}

inline fail_group() {       // rule 16
  if
  :: serving ->
    serving = false;
    clear_marks();
    store_error(0);
    store_error(1);
    store_error(2)
  :: else
  fi
}

inline leave_group(m) {     // rule 24: by command, or because the device has noticed that the port is lost
  if
  :: joined[m] -> joined[m] = false; fail_group()
  :: else
  fi
}

inline free_group() {       // rule 4
  fail_group();
  clear_joined();
  allocated = false;
  released = 0
}

inline die() {
  up = false;
  allocated = false;
  serving = false;
  released = 0;
  clear_joined();
  clear_marks();
  connected[0] = false; connected[1] = false; connected[2] = false;
  slot[0] = 0; slot[1] = 0; slot[2] = 0
}

#define BARRIER (released + base)
#define HAS_ENTERED(m) (entered[m] >= BARRIER)
#define HAS_PUBLISHED(m) (SEQUENCE_OF_WORD(m, BARRIER) >= BARRIER)
#define HAS_VOTED_OFF(m) (WORD(m, BARRIER) == SAYS(BARRIER, OFF))

inline release() {          // rule 11
  released++;
  clear_marks();
  assert(ALL(HAS_ENTERED));                 // early release
  assert(ALL(HAS_PUBLISHED));               // whom the release does not reach can pull
  assert(!ANY(HAS_VOTED_OFF));              // rule 28
  assert(BARRIER > highest);                // nothing is released twice
  highest = BARRIER;
  if
  :: store_flag(0, released); store_flag(1, released); store_flag(2, released)
  :: faults > 0 ->                          // the device is lost between two of these stores
    faults--;
    if :: flag[0] = released :: true fi;
    if :: flag[1] = released :: true fi;
    if :: flag[2] = released :: true fi;
    die()
  fi
}

inline take_arrival(m) {    // rules 10 to 13
  arrival = slot[m];
  slot[m] = 0;
  if
  :: !joined[m]
  :: joined[m] && !serving -> store_flag(m, ERROR + released)
  :: joined[m] && serving && arrival <= released -> store_flag(m, released)
  :: joined[m] && serving && arrival > released ->
    assert(arrival == released + 1);        // rule 13: a round is ahead of the device's
    marked[m] = true;
    if
    :: marked[0] && marked[1] && marked[2] -> release()
    :: else
    fi
  fi;
  arrival = 0
}

inline lose_member(m) {
  blame(m);
  connected[m] = false;
  if :: slot[m] = 0 :: true fi;             // an arrival under way, too
  if
  :: true -> leave_group(m)                 // the device has noticed that the port is lost
  :: true -> fail_group()                   // rule 34: its link is down, and it is a member still
  fi
}

active proctype device() {
  byte arrival;
end:
  do
  :: atomic { slot[0] != 0 -> take_arrival(0) }
  :: atomic { slot[1] != 0 -> take_arrival(1) }
  :: atomic { slot[2] != 0 -> take_arrival(2) }
  :: atomic { up && faults > 0 -> faults--; die() }
  :: atomic { serving && faults > 0 -> faults--; fail_group() }
  :: atomic { joined[0] && connected[0] && FAULT(0) -> lose_member(0) }
  :: atomic { joined[1] && connected[1] && FAULT(1) -> lose_member(1) }
  :: atomic { joined[2] && connected[2] && FAULT(2) -> lose_member(2) }
  :: atomic { !stopped -> stopped = true; faults = 0; named = 0 }
  od
}

// ---- A member in barrier n

#define IS_AHEAD(m) (entered[m] > n)
#define IS_HERE(m) (entered[m] >= n)
#define DOES_LIKE_ME(m) (entered[m] != n || software[m] == software[me])
#define HAS_WORD(m) (SEQUENCE_OF_WORD(m, n) == n)
#define SAYS_OFF(m) (WORD(m, n) == SAYS(n, OFF))
#define SAYS_READY(m) (WORD(m, n) == SAYS(n, READY))

inline enter() {
  entered[me] = n;
  assert(ALL(DOES_LIKE_ME))                 // all do barrier n in the same way
}

inline leave() {
  assert(ALL(IS_HERE));                     // early release
  left[me] = n;
  unanswered[me] = false
}

inline publish(vote) {
  WORD(me, n) = SAYS(n, vote)
}

inline ring() {
  if
  :: connected[me] -> slot[me] = n - base; unanswered[me] = false
  :: connected[me] && FAULT(me) -> blame(me); unanswered[me] = true
  :: connected[me] && FAULT(me) -> blame(me); connected[me] = false
  :: !connected[me]
  fi
}

#if defined(MUTANT_LOOK_AT_OFF_ONLY)
#define PULLS(m) SAYS_OFF(m)
#elif defined(MUTANT_LOOK_AT_OFF_OF_THIS_AND_NEXT)
#define PULLS(m) (SAYS_OFF(m) || WORD(m, n + 1) == SAYS(n + 1, OFF))
#else
#define PULLS(m) (SAYS_OFF(m) || WORD(m, n) == SAYS(n, PULL))
#define MARKS_PULL
#endif

#ifdef MUTANT_WHOLE_WORD
#define COUNTS(m) (WORD(m, n) == SAYS(n, ON))
#else
#define COUNTS(m) HAS_WORD(m)
#endif

#ifdef MUTANT_ALONE
#define ALL_USE_SOFTWARE true
#else
#define ALL_USE_SOFTWARE ANY(SAYS_OFF)
#endif
#ifdef MUTANT_BACK_ALONE
#define ALL_USE_DEVICE ready
#else
#define ALL_USE_DEVICE ALL(SAYS_READY)
#endif

#define FLAG_IS_N ((flag[me] & 127) == n - base)
#define FLAG_IS_ERROR (flag[me] >= ERROR && !FLAG_IS_N)

// Rules 18 and 27. Trouble is what the member's driver finds out in the end: an error release, no connection, a link
// that is down, that it is no member any more; or something that nobody else knows of.
inline await_release() {
  do
  :: FLAG_IS_N -> break
  :: atomic {
      FLAG_IS_ERROR || ANY(PULLS) || !connected[me] || !joined[me] || FAULT(me) ->
      if
      :: FLAG_IS_ERROR || ANY(PULLS) || !connected[me] || !joined[me]
      :: connected[me] && FAULT(me) -> blame(me); connected[me] = false
      fi;
      off = true;
#ifdef MARKS_PULL
      publish(PULL);
#endif
      break
    }
  :: atomic { unanswered[me] && connected[me] -> ring() }
#ifdef MUTANT_FINISH_BY_WORDS
  :: ALL(HAS_WORD) -> break
#endif
  od
}

// Whatever sequence a flag has that is over, only its ERROR may matter yet.
inline forget_flag() {
#ifndef MUTANT_OLD_LINE
  flag[me] = (software[me] -> 0 : flag[me] & ERROR)
#else
  skip
#endif
}

inline leave_and_free() {
  if
  :: software[me] && (joined[me] || me == 0 && allocated) ->
    atomic {
      if
      :: connected[me] ->
        leave_group(me);
        if :: me == 0 && allocated -> free_group() :: else fi
      :: else
      fi
    }
  :: else
  fi
}

// A new connection where the old one is lost; the device may have come back. By then it knows that the old one is gone.
inline reopen() {
  if :: !up -> up = true :: true fi;
  if
  :: up && !connected[me] ->
    leave_group(me);
    if :: me == 0 && allocated -> free_group() :: else fi;
    connected[me] = true
  :: else
  fi
}

inline offer() {            // rule 30
  reopen();
  if
  :: connected[me] ->
    assert(!allocated);
    allocated = true;
    serving = true;
#if defined(MUTANT_RESTART) || defined(MUTANT_OLD_LINE)
    released = 0;
#else
    released = n + P;
#endif
    vote = OFFER
  :: true
  fi
}

inline join() {             // rule 31
  atomic {
    reopen();
    if
    :: connected[me] && allocated ->
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
}

// The words of n are all there when a member leaves n: so they were since they came.
inline end_device_round() {
  if
  :: !off -> await_release()
  :: else
  fi;
  if
  :: atomic { !off -> leave(); assert(ALL(HAS_WORD)); forget_flag() }
  :: atomic {
      off && ALL(COUNTS) ->
      leave();
      assert(ALL(HAS_WORD));
      if
      :: ALL_USE_SOFTWARE -> software[me] = true; off = false
      :: else
      fi;
      forget_flag()
    }
  fi;
  leave_and_free()
}

// Rules 29 to 31: c, or S where a group was offered at c.
inline check_round() {
  atomic { enter(); publish(vote); vote = OFF };
  if
  :: atomic { !invited && ALL(HAS_WORD) -> leave(); invited = (WORD(0, n) == SAYS(n, OFFER)) };
    if
    :: invited -> join()
    :: else
    fi
  :: atomic {
      invited && ALL(HAS_WORD) ->
      leave();
      if
      :: ALL_USE_DEVICE ->
        software[me] = false;
#if defined(MUTANT_RESTART) || defined(MUTANT_OLD_LINE)
        base = n
#endif
      :: else
      fi;
      invited = false;
      ready = false
    };
    leave_and_free()
  fi
}

#define BY_DEVICE (!software[me])
#define BY_CHECK (software[me] && n % P == 0)
#define BY_SOFTWARE (software[me] && n % P != 0)

proctype member(byte me) {
  byte n = FIRST;           // this barrier
  bool off;                 // rule 27
  bool invited, ready;      // a group was offered; this member has joined it
  byte vote = OFF;          // at the next check round
end:
  do
  :: atomic {
      n < LAST && (!stopped || ANY(IS_AHEAD)) ->
      n++;
      if
      :: BY_DEVICE ->
        enter();
#ifndef MUTANT_RING_FIRST
        publish((off -> OFF : ON));
#endif
        if :: !off -> ring() :: else fi
      :: BY_SOFTWARE -> enter()
      :: BY_CHECK && !invited && me == 0 -> offer()
      :: BY_CHECK && invited && ready -> if :: vote = READY :: true fi
      :: BY_CHECK && (!invited && me != 0 || invited && !ready)
      fi
    };
#ifdef MUTANT_RING_FIRST
    if :: BY_DEVICE -> publish((off -> OFF : ON)) :: else fi;
#endif
    if
    :: BY_DEVICE -> end_device_round()
    :: atomic { BY_SOFTWARE && ALL(IS_HERE) -> leave() }
    :: BY_CHECK -> check_round()
    fi
  od
}

init {
  atomic {
    faults = FAULTS;
    named = (P <= LAST -> 1 : 0);
    connected[0] = true; connected[1] = true; connected[2] = true;
    entered[0] = FIRST; entered[1] = FIRST; entered[2] = FIRST;
    left[0] = FIRST; left[1] = FIRST; left[2] = FIRST;
    highest = FIRST;
#ifdef BEGIN_IN_SOFTWARE
    software[0] = true; software[1] = true; software[2] = true;
#else
    allocated = true; serving = true; released = FIRST;
    joined[0] = true; joined[1] = true; joined[2] = true;
#endif
    run member(0); run member(1); run member(2)
  }
}
