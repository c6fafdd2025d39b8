// SPDX-License-Identifier: Apache-2.0
// How a member that has trouble in barrier n makes the others pull it, and the words that it waits for afterwards. How
// members that share a port ring and are released.
//
// SEES_ALARM          another member has trouble
// mark_trouble()      a member begins to pull n
// mark_off()          a member enters n and will not ring
// raise_alarms()      a member that pulls alarms the others before it waits for words
// begin_alarms()      a member begins to use a new group
// WORDS_ARE_THERE     n ends by words; then ANYBODY_SAYS_OFF is evaluated

#if defined(ALARM_NETWORK)
// ---- No shared memory: a puller stores n to the alarm of each other member, one at a time, in any order.
byte alarm[MEMBERS];
byte base[BLOCKS];          // the barrier before the group's first one
#if BLOCKS == 1
#define EVERYBODY_WITH_ME ((1 << MEMBERS) - 1)
#else
#define EVERYBODY_WITH_ME (BLOCK(me) == 0 -> (1 << SECOND_BLOCK) - 1 : (1 << MEMBERS) - (1 << SECOND_BLOCK))
#endif
#ifdef MUTANT_ALARMS_RESTART
#define IS_ALARM (alarm[me] > 0)
#define IS_OLD_ALARM IS_ALARM
#define ALARM (n - base[BLOCK(me)])
#else
#define IS_OLD_ALARM (alarm[me] > n)
#define IS_ALARM (alarm[me] > base[BLOCK(me)])
#define ALARM n
#endif
#if defined(MUTANT_NO_ALARM)
#define SEES_ALARM ANY(SAYS_OFF)
#elif defined(MUTANT_ALARM_OF_THIS_BARRIER)
#define SEES_ALARM (alarm[me] == n)
#else
#define SEES_ALARM IS_ALARM
#endif

#define ALARM_FOR(m) atomic { to_alarm & (1 << m) -> alarm[m] = ALARM; to_alarm = to_alarm - (1 << m) }
#if MEMBERS == 2
#define ALARMS_LEFT :: ALARM_FOR(0) :: ALARM_FOR(1)
#elif MEMBERS == 3
#define ALARMS_LEFT :: ALARM_FOR(0) :: ALARM_FOR(1) :: ALARM_FOR(2)
#else
#define ALARMS_LEFT :: ALARM_FOR(0) :: ALARM_FOR(1) :: ALARM_FOR(2) :: ALARM_FOR(3)
#endif

inline mark_trouble() {
  to_alarm = EVERYBODY_WITH_ME - (1 << me)
}

inline mark_off() {
#ifdef MUTANT_LEAVE_BEFORE_ALARMS
  do
  ALARMS_LEFT
  :: to_alarm == 0 -> break
  od
#else
  skip
#endif
}

inline raise_alarms() {
  do
  ALARMS_LEFT
  :: to_alarm == 0 -> break
#ifdef MUTANT_LEAVE_BEFORE_ALARMS
  :: true -> break          // the rest is sent as this member enters its next barrier
#endif
  od
}

inline begin_alarms() {
  base[BLOCK(me)] = n
#ifdef MUTANT_WORDS_RESTART
  ; before[me] = n
#endif
}

#define WORDS_ARE_THERE ALL(HAS_WORD)
#define ANYBODY_SAYS_OFF ANY(SAYS_OFF)

#elif defined(ALARM_NODE)
// ---- Memory of a node. `pull` is the last barrier that must be completed by words. When that is k or later, and all
// members of the node have arrived at k, its leader sends k and the votes of its members to the other leaders, once.
// The message also asks the others for theirs, which end up in `remote`. Messages arrive in any order.
byte pull[NODES];
#define RAISE_PULL(node, k) pull[node] = (pull[node] < k -> k : pull[node])
#ifdef MUTANT_PULL_OF_THIS_BARRIER
#define SEES_ALARM (pull[NODE(me)] == n)
#elif defined(PULL_GROUP)   // any barrier of this group
#define SEES_ALARM (pull[NODE(me)] > FIRST)
#else
#define SEES_ALARM (pull[NODE(me)] >= n)
#endif

inline mark_trouble() {
  RAISE_PULL(NODE(me), n)
}

inline mark_off() {
  RAISE_PULL(NODE(me), n)
}

inline begin_alarms() {
  skip
}

#define HAS_WORD_HERE(m) (NODE(m) != NODE(me) || HAS_WORD(m))
#define SAYS_OFF_HERE(m) (NODE(m) == NODE(me) && SAYS_OFF(m))
#if NODES == 1
#define WORDS_ARE_THERE ALL(HAS_WORD_HERE)
#define ANYBODY_SAYS_OFF ANY(SAYS_OFF_HERE)
#else
byte remote[2 * NODES];
byte heard[2 * NODES];      // the same before all nodes have answered
byte voices[2 * NODES];     // how many have answered
byte told[2 * NODES];
chan mail[NODES] = [(NODES - 1) * (LAST - FIRST) + 1] of { byte };
#define WORDS_ARE_THERE (ALL(HAS_WORD_HERE) && remote[SLOT(NODE(me), n)] / 4 == n)
#define ANYBODY_SAYS_OFF (ANY(SAYS_OFF_HERE) || remote[SLOT(NODE(me), n)] == SAYS(n, OFF))

#ifdef MUTANT_ANSWER_IN_BARRIERS_ONLY
#define ANSWERS (entered[LEADER(node)] != left[LEADER(node)])
#else
#define ANSWERS true
#endif
#define THIS entered[LEADER(node)]
#define CAME_TO(m, k) (NODE(m) != node || SEQUENCE_OF_WORD(m, k) == k)
#define CAME_TO_THIS(m) CAME_TO(m, THIS)
#define CAME_TO_LAST(m) CAME_TO(m, THIS - 1)
#define IS_OFF_IN_K(m) (NODE(m) == node && WORD(m, k) == SAYS(k, OFF))
#define MAY_TELL(barrier, came) \
  (ANSWERS && barrier > FIRST && barrier <= pull[node] && told[SLOT(node, barrier)] < barrier && ALL(came))

inline tell_node(to) {
  if
  :: to < NODES && node != to ->
    mail[to] !! SAYS(k, vote);
#ifdef MUTANT_TELL_TWICE
    mail[to] !! SAYS(k, vote)
#endif
  :: else
  fi
}

inline tell() {
  told[SLOT(node, k)] = k;
  vote = (ANY(IS_OFF_IN_K) -> OFF : ON);
  tell_node(0);
  tell_node(1);
#if NODES > 2
  tell_node(2);
#endif
  k = 0;
  vote = 0
}

inline hear(vote) {
  if
  :: heard[SLOT(node, k)] / 4 < k -> heard[SLOT(node, k)] = SAYS(k, ON); voices[SLOT(node, k)] = 0
  :: else
  fi;
  if
  :: heard[SLOT(node, k)] / 4 == k ->
    heard[SLOT(node, k)] = heard[SLOT(node, k)] | vote;
    voices[SLOT(node, k)]++;
    if
    :: voices[SLOT(node, k)] == NODES - 1 -> remote[SLOT(node, k)] = heard[SLOT(node, k)]
    :: else
    fi
  :: else
  fi;
#ifndef MUTANT_HEAR_WITHOUT_ASKING
  RAISE_PULL(node, k);
#endif
  k = 0
}

#if LAST > 4
#error "HEARS for each barrier"
#endif
#define HEARS(barrier) \
  :: atomic { mail[node] ?? eval(SAYS(barrier, ON)) -> k = barrier; hear(ON) } \
  :: atomic { mail[node] ?? eval(SAYS(barrier, OFF)) -> k = barrier; hear(OFF) }

// A leader answers at any time, inside and outside of barriers.
proctype leader(byte node) {
  byte k, vote;
end:
  do
  :: atomic { MAY_TELL(THIS, CAME_TO_THIS) -> k = THIS; tell() }
#ifndef MUTANT_TELL_THIS_ONLY
  :: atomic { MAY_TELL(THIS - 1, CAME_TO_LAST) -> k = THIS - 1; tell() }
#endif
  HEARS(1)
  HEARS(2)
  HEARS(3)
  HEARS(4)
  od
}
#endif                      // NODES

#else
// ---- Shared memory: a puller marks its own word, and all members look at the words while they wait.
#if defined(MUTANT_LOOK_AT_OFF_ONLY)
#define PULLS(m) SAYS_OFF(m)
#elif defined(MUTANT_LOOK_AT_OFF_OF_THIS_AND_NEXT)
#define PULLS(m) (SAYS_OFF(m) || HAS_WORDS(m) && WORD(m, n + 1) == SAYS(n + 1, OFF))
#else
#define PULLS(m) (SAYS_OFF(m) || HAS_WORDS(m) && WORD(m, n) == SAYS(n, PULL))
#endif
#define SEES_ALARM ANY(PULLS)
#ifdef MUTANT_WHOLE_WORD
#define COUNTS(m) (WORD(m, n) == SAYS(n, ON))
#else
#define COUNTS(m) HAS_WORD(m)
#endif
#define WORDS_ARE_THERE ALL(COUNTS)
#define ANYBODY_SAYS_OFF ANY(SAYS_OFF)

inline mark_trouble() {
#if defined(MUTANT_LOOK_AT_OFF_ONLY) || defined(MUTANT_LOOK_AT_OFF_OF_THIS_AND_NEXT)
  skip
#else
  publish(PULL)
#endif
}

inline mark_off() {
  skip
}

inline begin_alarms() {
  skip
}
#endif

// ---- Members that share a port
#if defined(OPENERS)
// They gather at the opener, which releases them when it leaves. In a barrier in two phases all members of all ports
// synchronize in memory instead, and the openers also ring.
#define IS_HERE_BEHIND_MY_PORT(m) (HOLDER(m) != me || entered[m] >= n)
#define HAS_GATHERED (IN_TWO_PHASES(n) || ALL(IS_HERE_BEHIND_MY_PORT))
#ifdef MUTANT_DEVICE_ENDS_BOTH_PHASES
#define IS_MET true
#else
#define IS_MET (!IN_TWO_PHASES(n) || ALL(IS_HERE))
#endif
#ifdef MUTANT_LET_GO_EARLY
#define LETS_GO (entered[HOLDER(me)] >= n)
#else
#define LETS_GO (left[HOLDER(me)] >= n)
#endif

inline gather() {
  entered[me] = n;
#ifndef MUTANT_RING_BEFORE_GATHERING
  HAS_GATHERED
#endif
}

proctype sharer(byte me) {
  byte n = FIRST;
end:
  do
  :: atomic { MAY_ENTER -> n++; entered[me] = n };
    atomic { (IN_TWO_PHASES(n) -> ALL(IS_HERE) : LETS_GO) -> leave() }
  od
}

#else
#define IS_MET true
inline gather() {
#ifdef ALARM_NODE           // a member may also give the device up between two barriers
  if
  :: true
  :: !software[me] && !off && FAULT(me) -> blame(me); off = true
  fi
#else
  skip
#endif
}
#endif

#ifdef SHARED_PORTS
// All members publish. A holder rings when all members that share its port have arrived and say ON. They wait for its
// `let_go`, or for an alarm.
byte let_go[MEMBERS];       // the last barrier from which the device has released the holder
bool rung[MEMBERS];
#define SHARES_MY_PORT(m) (m != me && HOLDER(m) == me)
#define LETS_ME_RING(m) (!SHARES_MY_PORT(m) || WORD(m, n) == SAYS(n, ON))
#define KEEPS_ME_FROM_RINGING(m) (SHARES_MY_PORT(m) && SAYS_OFF(m))
#if defined(MUTANT_RING_BEFORE_SHARERS)
#define MAY_RING (HOLDS(me) && !rung[me])
#define KEPT_FROM_RINGING false
#elif defined(MUTANT_RING_FOR_OFF)
#define RINGS_FOR(m) (!SHARES_MY_PORT(m) || HAS_WORD(m))
#define MAY_RING (HOLDS(me) && !rung[me] && ALL(RINGS_FOR))
#define KEPT_FROM_RINGING false
#else
#define MAY_RING (HOLDS(me) && !rung[me] && ALL(LETS_ME_RING))
#define KEPT_FROM_RINGING (HOLDS(me) && !rung[me] && ANY(KEEPS_ME_FROM_RINGING))
#endif
#define HAS_RUNG (HOLDS(me) && rung[me])
#define IS_RELEASED (HOLDS(me) && rung[me] && FLAG_IS_N || !HOLDS(me) && let_go[HOLDER(me)] == n)
#define HAS_TROUBLE (HAS_RUNG && PORT_HAS_TROUBLE || KEPT_FROM_RINGING)

inline ring_or_wait() {
  rung[me] = false
}
inline hand_on_release() {
  if :: HOLDS(me) -> let_go[me] = n :: else fi
}
#else
#define HAS_RUNG true
#define IS_RELEASED FLAG_IS_N
#define HAS_TROUBLE PORT_HAS_TROUBLE
#define ring_or_wait ring
#endif
