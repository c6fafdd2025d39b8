// SPDX-License-Identifier: Apache-2.0
// The barrier protocol of uapi/README.md, rules 9-18 and 25-33, in all variants that the code has: the members, the
// words that they publish, and their steps in a barrier. device.pml has the device and its faults, alarm.pml the ways
// in which a member that pulls alarms the others, shape.pml the nodes and ports of the members. README.md explains the
// variants, what is not modelled, and why several stores may be one step here.

// ---- Configuration
#ifndef MEMBERS
#define MEMBERS 3           // 2 to 4
#endif
#ifndef FIRST
#define FIRST 0             // the barrier before the first one
#endif
#ifndef LAST
#define LAST 4              // the last barrier
#endif
#ifndef FAULTS
#define FAULTS 2            // up to so many faults
#endif
#ifndef P
#define P 2                 // rule 29
#endif
// ALARM_NETWORK, ALARM_NODE, or neither: then a member that pulls marks its word.
// NODE<m>: the node of member m, with ALARM_NODE. Members of one node share memory.
// PORT<m>: the member whose port member m uses. OPENERS: members behind one port gather at the one that opened it;
// SHARED_PORTS: they all publish words, and that member rings for them.
// WORDS_IN_SOFTWARE: barriers in software also end by words.
// BLOCK<m>: the block of member m. With several, a barrier of all members is an odd and an even one of each block.
#include "shape.pml"

// ---- Published words, rule 25
#define ON 0
#define OFF 1
#define PULL 2              // in a round of the device
#define OFFER 2             // in a check round
#define READY 3
#ifdef MUTANT_ONE_SLOT
#define SLOT(m, n) (m)
#else
#define SLOT(m, n) (2 * (m) + (n) % 2)
#endif
#define WORD(m, n) word[SLOT(m, n)]
#define SEQUENCE_OF_WORD(m, n) (WORD(m, n) / 4)
#define SAYS(n, vote) ((n) * 4 + (vote))
byte word[2 * MEMBERS];
#ifdef MUTANT_WORDS_RESTART
byte before[MEMBERS];       // the first barrier of this member's group
#define NUMBER(n, m) ((n) - before[m])
#else
#define NUMBER(n, m) (n)
#endif

// ---- The state of the members, for the checks
byte entered[MEMBERS];      // the last barrier that was entered
byte left[MEMBERS];         // the last barrier that was left
bool software[MEMBERS];     // the next barrier is in software
bool stopped;               // no more faults, and no member is the first to enter a barrier

#include "device.pml"

// ---- A member in barrier n

#define IS_AHEAD(m) (entered[m] > n)
#define MAY_ENTER (n < LAST && (!stopped || ANY(IS_AHEAD)))
#if BLOCKS > 1              // a barrier of all members is an odd and an even one of each block
#define HAS_COME(m) (entered[m] >= n - 1 + n % 2)
#ifdef MUTANT_SKIP_THIRD_STEP
#define IS_OVER_FOR_ALL (n % 2 == 0 || !OWNS(me))
#else
#define IS_OVER_FOR_ALL (n % 2 == 0)
#endif
#endif
#define IS_HERE(m) (!WITH_ME(m) || entered[m] >= n)
#define DOES_LIKE_ME(m) (!WITH_ME(m) || !HAS_WORDS(m) || entered[m] != n || software[m] == software[me])
#define HAS_WORD(m) (!WITH_ME(m) || !HAS_WORDS(m) || SEQUENCE_OF_WORD(m, n) == NUMBER(n, me))
#define SAYS_OFF(m) (WITH_ME(m) && HAS_WORDS(m) && WORD(m, n) == SAYS(NUMBER(n, me), OFF))
#define SAYS_READY(m) (!WITH_ME(m) || !HAS_WORDS(m) || WORD(m, n) == SAYS(n, READY))

inline enter() {
  entered[me] = n;
  assert(ALL(DOES_LIKE_ME))                 // all members complete barrier n in the same way
}

inline leave() {
  assert(ALL(IS_HERE));                     // early release
#if BLOCKS > 1
  assert(!IS_OVER_FOR_ALL || ALL(HAS_COME));
#endif
  left[me] = n;
  unanswered[me] = false
}

inline publish(vote) {
  WORD(me, n) = SAYS(NUMBER(n, me), vote)
}

#include "alarm.pml"

#ifdef MUTANT_ALONE
#define ALL_USE_SOFTWARE true
#else
#define ALL_USE_SOFTWARE ANYBODY_SAYS_OFF
#endif
#ifdef MUTANT_BACK_ALONE
#define ALL_USE_DEVICE(condition) ready
#else
#define ALL_USE_DEVICE(condition) (condition)
#endif

// Rules 18 and 27. Trouble is a failure that the member's driver finds at some time: an error release, a lost
// connection, a link that is down, a lost membership; or a fault that no other member notices.
inline await_release() {
  do
#ifdef SHARED_PORTS
  :: atomic { IS_RELEASED -> hand_on_release(); break }
#else
  :: IS_RELEASED -> break
#endif
  :: atomic {
      HAS_TROUBLE || SEES_ALARM || FAULT(me) ->
      if
      :: HAS_TROUBLE || SEES_ALARM
      :: (connected[me] || !HOLDS(me)) && FAULT(me) -> blame(me); connected[me] = false
      fi;
      off = true;
      mark_trouble();
      break
    }
#ifdef MUTANT_SHARER_FINISHES_BY_WORDS
  :: !HOLDS(me) && ALL(HAS_WORD) -> break
#endif
  :: atomic { HAS_RUNG && unanswered[me] && connected[me] -> ring() }
#ifdef SHARED_PORTS
  :: atomic { MAY_RING -> ring(); rung[me] = true }
#endif
#ifdef MUTANT_FINISH_BY_WORDS
  :: ALL(HAS_WORD) -> break
#endif
  od
}

// When a member leaves n, all words of n are present: none has been overwritten since it was published.
inline end_device_round() {
  if
  :: !off ->
    await_release();
#ifdef ALARM_NETWORK
    raise_alarms()
#endif
  :: else
  fi;
  if
  :: atomic { !off && IS_MET -> leave(); assert(ALL(HAS_WORD)); forget_flag() }
  :: atomic {
      off && WORDS_ARE_THERE && IS_MET ->
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

inline use_device() {
  software[me] = false;
#if defined(MUTANT_RESTART) || defined(MUTANT_OLD_LINE)
  restarted = n;
#endif
  begin_alarms()
}

#ifndef ALARM_NETWORK
#define BY_CHECK (software[me] && n % P == 0)

// Rules 29 to 31: round c, or round S if a group was offered at c.
inline check_round() {
  atomic { enter(); publish(vote); vote = OFF };
  if
  :: atomic {
      !invited && ALL(HAS_WORD) && IS_MET ->
      leave();
      invited = (WORD(OWNER(me), n) == SAYS(n, OFFER))
    };
    if
    :: invited -> atomic { join() }
    :: else
    fi
  :: atomic {
      invited && ALL(HAS_WORD) && IS_MET ->
      leave();
      if
      :: ALL_USE_DEVICE(ALL(SAYS_READY)) -> use_device()
      :: else
      fi;
      invited = false;
      ready = false
    };
    leave_and_free()
  fi
}
#else
#define BY_CHECK false

// Between two barriers in software the members of a block ask for a group again. By messages they tell each other first
// whether a group is offered, then whether they have joined it. A message names the barrier that precedes it.
byte offered[BLOCKS];
byte answer[MEMBERS];
#define HAS_LEFT(m) (!WITH_ME(m) || left[m] >= n)
#define HAS_ANSWERED(m) (!WITH_ME(m) || answer[m] / 4 == n)
#define ANSWERS_READY(m) (!WITH_ME(m) || answer[m] == SAYS(n, READY))

inline ask_again() {
  if
  :: OWNS(me) -> atomic { offer(n); offered[BLOCK(me)] = SAYS(n, vote); vote = OFF }
  :: else
  fi;
  atomic {
    ALL(HAS_LEFT) && offered[BLOCK(me)] / 4 == n;
    if
    :: offered[BLOCK(me)] == SAYS(n, OFFER) ->
      assert(!IS_OLD_ALARM);                // it would make the members give the new group up
      join();
      answer[me] = SAYS(n, (ready -> READY : OFF));
      invited = true
    :: else
    fi
  };
  if
  :: invited ->
    atomic {
      ALL(HAS_ANSWERED);
      if
      :: ALL_USE_DEVICE(ALL(ANSWERS_READY)) -> use_device()
      :: else
      fi;
      invited = false;
      ready = false
    };
    leave_and_free()
  :: else
  fi
}
#endif

#define BY_DEVICE (!software[me])
#define BY_SOFTWARE (software[me] && !BY_CHECK)
#if BLOCKS == 1
#define IS_NEXT MAY_ENTER
#define ASKS_AGAIN (software[me] && n % P == 0 && n < LAST)
#else
// A barrier of all members has three steps: each block, the first members of the blocks, and each block again.
#define HAS_LEFT_FIRST_STEP(m) (!OWNS(m) || left[m] >= n)
#ifdef MUTANT_SKIP_SECOND_STEP
#define HAS_DONE_SECOND_STEP true
#else
#define HAS_DONE_SECOND_STEP (!OWNS(me) || ALL(HAS_LEFT_FIRST_STEP))
#endif
#define IS_NEXT (n % 2 == 0 && MAY_ENTER || n % 2 == 1 && HAS_DONE_SECOND_STEP)
#define ASKS_AGAIN (software[me] && n % P == 0 && n < LAST && !ALONE(me))
#endif

#ifdef WORDS_IN_SOFTWARE
#define SOFTWARE_IS_OVER ALL(HAS_WORD)
#else
#define SOFTWARE_IS_OVER ALL(IS_HERE)
#endif

proctype member(byte me) {
  byte n = FIRST;           // the current barrier
  bool off;                 // rule 27
  bool invited, ready;      // a group was offered; this member has joined it
  byte vote = OFF;          // for the next check round
#ifdef ALARM_NETWORK
  byte to_alarm;            // members that it has not alarmed yet
#endif
end:
  do
  :: atomic {
      IS_NEXT ->
      n++;
      gather();
      if
      :: BY_DEVICE ->
        enter();
#ifndef MUTANT_RING_FIRST
        publish((off -> OFF : ON));
#endif
        if
        :: !off -> ring_or_wait()
        :: off -> mark_off()
        fi
      :: BY_SOFTWARE ->
        enter();
#ifdef WORDS_IN_SOFTWARE
        publish(OFF)
#endif
      :: BY_CHECK && !invited && OWNS(me) -> offer(n + P)
      :: BY_CHECK && invited && ready -> if :: vote = READY :: true fi
      :: BY_CHECK && (!invited && !OWNS(me) || invited && !ready)
      fi
    };
#ifdef MUTANT_RING_FIRST
    if :: BY_DEVICE -> publish((off -> OFF : ON)) :: else fi;
#endif
    if
    :: BY_DEVICE -> end_device_round()
    :: atomic { BY_SOFTWARE && SOFTWARE_IS_OVER -> leave() }
#ifndef ALARM_NETWORK
    :: BY_CHECK -> check_round()
#endif
    fi;
#ifdef ALARM_NETWORK
    if
    :: ASKS_AGAIN -> ask_again()
    :: else
    fi
#endif
  od
}

#define SET_UP(m, with) \
  entered[m] = FIRST; \
  left[m] = FIRST; \
  connected[m] = HOLDS(m); \
  joined[m] = HOLDS(m) && with; \
  software[m] = !with || ALONE(m)
#ifdef OPENERS
#define RUN(m, with) if :: HOLDS(m) -> run member(m) :: else -> run sharer(m) fi
#else
#define RUN(m, with) run member(m)
#endif

init {
  atomic {
    faults = FAULTS;
    named = FIRST_TO_BE_HIT;
    highest[0] = FIRST;
#ifdef BEGIN_IN_SOFTWARE
    FOR_EACH(SET_UP, false);
#else
    FOR_EACH(SET_UP, true);
    allocated[0] = true; serving[0] = true; released[0] = FIRST;
#endif
    run device(0);
#if BLOCKS > 1
    highest[1] = FIRST;
    if
    :: !ALONE(SECOND_BLOCK) ->
      allocated[1] = true; serving[1] = true; released[1] = FIRST;
      run device(1)
    :: else
    fi;
#endif
#if NODES > 1
    run leader(0); run leader(1);
#if NODES > 2
    run leader(2);
#endif
#endif
    FOR_EACH(RUN, 0)
  }
}
