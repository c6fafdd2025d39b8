// SPDX-License-Identifier: Apache-2.0
/* How the members that are left of a team on several nodes agree on who they are, and on the id of their new team, by
 * which its barriers are numbered: shmem/team/spanning_survivors.hpp. There are only messages, from each member to each
 * other one, and each comes at any later time.
 *
 * A member may die before each of its steps, also when it has sent a message to some members and not to others: DEATHS
 * in all. The others find out at any later time, and may not get what it has sent last. Up to TIMEOUTS waits end
 * early: the members that have not been heard are held for gone, and may come at any later time. With CUTS the network
 * between two members fails, at any time. With HALVES the first half of the members and the second one do not reach
 * each other, and each half goes on by itself.
 *
 * REQUIRES, in each half: one member lives to the end, and no other one holds it for gone.
 */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#define BIT(i) (1 << (i))
#define ALL (BIT(MEMBERS) - 1)
#define NOBODY MEMBERS
#ifdef HALVES
#define HALF(i) ((i) / ((MEMBERS + 1) / 2))
#define PART(i) (HALF(i) == 0 -> BIT((MEMBERS + 1) / 2) - 1 : ALL & ~(BIT((MEMBERS + 1) / 2) - 1))
#else
#define HALF(i) 0
#define PART(i) ALL
#endif

/* Masks of members. A member sends the same to all. */
byte begun_to[MEMBERS];    /* those to which it has sent that it has begun */
byte losses[MEMBERS];      /* what it says then: members that it has lost */
byte proposed_to[MEMBERS]; /* those to which it has sent its proposal */
byte proposal[MEMBERS], id[MEMBERS];
byte dead, deaths, timeouts;
byte cut;             /* two members */
byte began;           /* in whatever order */
byte first = NOBODY;  /* its call on the team has failed */

/* What is asserted. */
byte suspects;        /* members that have died, or that another one of their half holds for gone */
byte left[2];         /* what the members of a half have got; 0: none has got it yet */
byte given[2];        /* the id */
bool cut_early;       /* before both had begun */

#define APART(i, j) (HALF(i) != HALF(j) || ((cut & BIT(i)) && (cut & BIT(j))))
#define IS_DEAD(i) ((dead & BIT(i)) != 0)
/* One member of the half is above suspicion, also without those of the mask. */
#define MAY_LOSE(i, mask) ((PART(i) & ~(suspects | (mask))) != 0)
#define MAY_DIE (deaths < DEATHS && MAY_LOSE(_pid, BIT(_pid)))
#define DIES                 \
  deaths++;                  \
  dead = dead | BIT(_pid);   \
  suspects = suspects | BIT(_pid)

#define HAS_BEGUN_TO(i, j) ((begun_to[i] & BIT(j)) && !APART(i, j))
#define HAS_PROPOSED_TO(i, j) ((proposed_to[i] & BIT(j)) && !APART(i, j))
#if MEMBERS == 2
#define SOME(is, j) (is(0, j) || is(1, j))
#elif MEMBERS == 3
#define SOME(is, j) (is(0, j) || is(1, j) || is(2, j))
#else
#define SOME(is, j) (is(0, j) || is(1, j) || is(2, j) || is(3, j))
#endif

#ifdef MUTANT_BEGIN_UNHEARD
#define IS_TOLD false
#else
#define IS_TOLD SOME(HAS_BEGUN_TO, _pid)
#endif
/* In a barrier, a member finds out about one other member that has died or is not reached. */
#define PREVIOUS ((_pid + MEMBERS - 1) % MEMBERS)
#define NOTICES (IS_DEAD(PREVIOUS) || APART(PREVIOUS, _pid))
#ifdef MUTANT_WAIT_FOR_THE_DEAD
#define IS_LOST(i) APART(i, _pid)
#else
#define IS_LOST(i) (IS_DEAD(i) || APART(i, _pid))
#endif
#define IS_GONE(i) ((gone & BIT(i)) != 0)

/* Alternatives of a wait for the others, for member i. */
#define HEARS_OF(i)                                                           \
  :: atomic { HAS_BEGUN_TO(i, _pid) && !(here & BIT(i)) -> here = here | BIT(i) } \
  :: atomic { HAS_PROPOSED_TO(i, _pid) && !proposed -> proposed = BIT(i) } \
  :: atomic { (i) != _pid && IS_LOST(i) && !IS_GONE(i) -> gone = gone | BIT(i) }
/* Member j has said so when it began. This member's own losses are not here. */
#define SAYS_LOST(j, i) ((losses[j] & BIT(i)) != 0)
#define LATE (ALL & ~(BIT(_pid) | here | gone))

/* Any part of `mask`. */
inline some_of(mask) {
  i = 0;
  do
  :: i < MEMBERS -> mask = mask & ~BIT(i); i++
  :: i < MEMBERS -> i++
  :: i == MEMBERS -> break
  od
}

active [MEMBERS] proctype Member() {
  byte i, j, to, turn, set, from;
  byte here;     /* it has heard of their begin */
  byte proposed; /* their proposals have come */
  byte gone;     /* it waits no more for them */
  bool out;

  /* In a barrier of the team. */
  atomic {
    if
    :: first == NOBODY -> first = _pid
    :: IS_TOLD
    :: NOTICES
    :: MAY_DIE -> DIES; goto has_died
    fi
  }

  atomic { /* It tells the others, with those that it has lost: all that it cannot reach, and some of those that died. */
#ifdef CUTS
    began = began | BIT(_pid);
#endif
    to = 0;
    do
    :: to < MEMBERS && to != _pid && IS_LOST(to) -> gone = gone | BIT(to); to++
    :: to < MEMBERS && (to == _pid || !APART(to, _pid)) -> to++
    :: to == MEMBERS -> break
    od;
#ifdef MUTANT_TELL_NO_LOSSES
    losses[_pid] = 0;
#else
    losses[_pid] = gone;
#endif
    to = ALL & ~(BIT(_pid) | gone);
    if
    :: begun_to[_pid] = to
    :: MAY_DIE -> some_of(to); begun_to[_pid] = to; DIES; goto has_died
    fi;
    i = 0
  }

  do /* It waits for the others. */
  HEARS_OF(0)
  HEARS_OF(1)
#if MEMBERS > 2
  HEARS_OF(2)
#endif
#if MEMBERS > 3
  HEARS_OF(3)
#endif
  :: LATE == 0 -> break
  :: proposed -> break /* its sender has waited for every member */
  :: atomic {
       LATE != 0 && timeouts < TIMEOUTS && MAY_LOSE(_pid, LATE) ->
       timeouts++;
       suspects = suspects | (LATE & PART(_pid));
       gone = gone | LATE;
       break
     }
  :: atomic { MAY_DIE -> DIES; goto has_died }
  od;

  atomic { /* Its proposal: who has begun. If one says that it has lost the other, that one is out; if both do, the second. */
    here = (here & ~gone) | BIT(_pid);
    set = 0;
    i = 0;
    do
    :: i < MEMBERS && (here & BIT(i)) ->
       out = false;
       j = 0;
       do
       :: j < MEMBERS && (here & BIT(j)) ->
#ifdef MUTANT_SECOND_IS_OUT
          out = out || ((SAYS_LOST(j, i) || SAYS_LOST(i, j)) && (set & BIT(j)));
#else
          out = out || (SAYS_LOST(j, i) && (!SAYS_LOST(i, j) || (set & BIT(j))));
#endif
          j++
       :: j < MEMBERS && !(here & BIT(j)) -> j++
       :: j == MEMBERS -> break
       od;
       set = (out -> set : set | BIT(i));
       i++
    :: i < MEMBERS && !(here & BIT(i)) -> i++
    :: i == MEMBERS -> break
    od;
    from = _pid;
    i = 0;
#ifndef MUTANT_PROPOSE_UNINFORMED
    do /* One that has come counts: if it has ended this member's wait, this one has not heard of all. */
    :: i < MEMBERS && (proposed & BIT(i)) -> set = proposal[i]; from = id[i]; i++
    :: i < MEMBERS && !(proposed & BIT(i)) -> i++
    :: i == MEMBERS -> break
    od;
#endif
#ifdef MUTANT_OWN_PROPOSAL
    proposal[_pid] = set;
    id[_pid] = from;
#endif
    here = 0; out = false; i = 0; j = 0; to = 0
  }

  do /* Each member in turn. */
  :: turn < MEMBERS && turn == _pid ->
     atomic {
#ifndef MUTANT_OWN_PROPOSAL
       proposal[_pid] = set;
       id[_pid] = from;
#endif
       to = ALL & ~BIT(_pid);
#ifdef MUTANT_NOT_TO_THE_LATE
       to = to & ~gone;
#endif
       if
       :: proposed_to[_pid] = to
       :: MAY_DIE -> some_of(to); proposed_to[_pid] = to; DIES; goto has_died
       fi;
       i = 0; to = 0;
#ifdef MUTANT_FIRST_TURN_ONLY
       turn = MEMBERS - 1;
#endif
       turn++
     }
  :: turn < MEMBERS && turn != _pid ->
     atomic {
       if
       :: HAS_PROPOSED_TO(turn, _pid) || (proposed & BIT(turn)) ->
          set = proposal[turn];
#ifndef MUTANT_OWN_ID
          from = id[turn];
#endif
#ifdef MUTANT_FIRST_TURN_ONLY
          turn = MEMBERS - 1;
#endif
          skip
       :: IS_GONE(turn) && !(proposed & BIT(turn))
       :: IS_LOST(turn) && !IS_GONE(turn) && !(proposed & BIT(turn)) -> gone = gone | BIT(turn)
       :: !HAS_PROPOSED_TO(turn, _pid) && !IS_GONE(turn) && timeouts < TIMEOUTS && MAY_LOSE(_pid, BIT(turn)) ->
          timeouts++;
          suspects = suspects | BIT(turn);
          gone = gone | BIT(turn)
#ifdef MUTANT_PASS_A_TURN
       :: !HAS_PROPOSED_TO(turn, _pid)
#endif
       :: MAY_DIE -> DIES; goto has_died
       fi;
       turn++
     }
  :: turn == MEMBERS -> break
  od;

  atomic {
    assert(set != 0);
    if
    :: left[HALF(_pid)] == 0 -> left[HALF(_pid)] = set; given[HALF(_pid)] = from
    :: else -> assert(left[HALF(_pid)] == set && given[HALF(_pid)] == from) /* all get the same, those left out, too */
    fi;
    assert((PART(_pid) & ~suspects & ~set) == 0);          /* who lives and comes is not left out */
    assert((set & ~PART(_pid)) == 0);
    assert(!cut_early || (set & cut) != cut);             /* members that have lost each other are not both in */
#ifdef MUTANT_WITHDRAW
    to = proposed_to[_pid];
    some_of(to);
    proposed_to[_pid] = to;
#endif
    i = 0; to = 0
  }
has_died:
  skip
}

#ifdef CUTS
active proctype Network() {
  byte i, j = 1;
  atomic {
    do
    :: j < MEMBERS - 1 -> j++
    :: i < j - 1 -> i++
    :: break
    od;
    if
    :: MAY_LOSE(i, BIT(i) | BIT(j)) ->
       cut = BIT(i) | BIT(j);
       suspects = suspects | cut;
       cut_early = (began & cut) != cut
    :: true
    fi
  }
}
#endif
