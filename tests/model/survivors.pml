// SPDX-License-Identifier: Apache-2.0
/* How the members that are left of a team agree on who they are, and on the slot of their new team:
 * shmem/team/survivors.hpp. All words are in memory that outlives the members. A member may die before each of its steps,
 * DEATHS in all. Up to TIMEOUTS waits end early: a member that has not come yet hangs for the one that waits, and comes
 * at any later time. Members shrink SHRINKS times; the old team's words are used in each, as if the same team was shrunk
 * again.
 */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef SHRINKS
#define SHRINKS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#define ALL ((1 << MEMBERS) - 1)
#define SLOTS 8 /* a member's number in `made`: that of the shrink, then who has made the slot */

byte begun[MEMBERS];   /* the last shrink that the member has begun */
byte verdict[MEMBERS]; /* 2 * n + 1: it is in after shrink n; 2 * n: it is left out */
byte made;             /* n * SLOTS + 1 + member */
bool dead[MEMBERS];
byte deaths, timeouts;

/* What is asserted. */
byte left[SHRINKS + 1]; /* what the members have got, as a mask; 0: nobody has got it yet */
byte slot[SHRINKS + 1];
byte out[SHRINKS + 1]; /* members that this shrink or one before has left out */

#define BIT(i) (1 << (i))
#define NUMBER(i) (verdict[i] / 2)
#ifdef MUTANT_WAIT_FOR_THE_DEAD
#define IS_HERE(i) (!(known & BIT(i)) || begun[i] >= n)
#else
#define IS_HERE(i) (!(known & BIT(i)) || begun[i] >= n || dead[i])
#endif
#if MEMBERS == 2
#define SOMEONE_HAS_VOTED (NUMBER(0) >= n || NUMBER(1) >= n)
#define ALL_HERE (IS_HERE(0) && IS_HERE(1))
#elif MEMBERS == 3
#define SOMEONE_HAS_VOTED (NUMBER(0) >= n || NUMBER(1) >= n || NUMBER(2) >= n)
#define ALL_HERE (IS_HERE(0) && IS_HERE(1) && IS_HERE(2))
#else
#define SOMEONE_HAS_VOTED (NUMBER(0) >= n || NUMBER(1) >= n || NUMBER(2) >= n || NUMBER(3) >= n)
#define ALL_HERE (IS_HERE(0) && IS_HERE(1) && IS_HERE(2) && IS_HERE(3))
#endif

/* At the beginning of a step. */
#define MAY_DIE                                                    \
  if                                                               \
  :: deaths < DEATHS -> deaths++; dead[_pid] = true; goto has_died \
  :: skip                                                          \
  fi

/* The first vote on a member counts. */
#ifdef MUTANT_LAST_VOTE_COUNTS
#define VOTES(i) true
#else
#define VOTES(i) (NUMBER(i) < n)
#endif
#ifdef MUTANT_LAST_SLOT_COUNTS
#define MAKES_SLOT true
#else
#define MAKES_SLOT (made / SLOTS < n)
#endif

active [MEMBERS] proctype Member() {
  byte n = 1, i, seen, set;
  byte known = ALL; /* members that were not left out, as far as this one knows */
  bool in;
  do
  :: n <= SHRINKS ->
     atomic {
       MAY_DIE;
       begun[_pid] = n
     }
     atomic {
       if
       :: SOMEONE_HAS_VOTED || ALL_HERE
       :: timeouts < TIMEOUTS && !(SOMEONE_HAS_VOTED || ALL_HERE) -> timeouts++
       :: deaths < DEATHS -> deaths++; dead[_pid] = true; goto has_died
       fi;
       i = 0
     }
     do
     :: i < MEMBERS && (known & BIT(i)) ->
        atomic { /* it looks */
          MAY_DIE;
          in = begun[i] >= n && !dead[i]
        }
        atomic { /* and votes */
          MAY_DIE;
          if
          :: VOTES(i) -> verdict[i] = 2 * n + in
          :: else
          fi;
#ifdef MUTANT_VOTE_ON_ONE
          i = MEMBERS - 1;
#endif
          i++
        }
     :: i < MEMBERS && !(known & BIT(i)) -> i++
     :: i == MEMBERS -> break
     od;
     atomic {
       MAY_DIE;
       set = 0;
       i = 0
     }
     do
     :: i < MEMBERS ->
        atomic {
          MAY_DIE;
          seen = verdict[i];
          if
          :: !(known & BIT(i))
          :: (known & BIT(i)) && seen / 2 == n && (seen & 1) -> set = set | BIT(i)
          :: (known & BIT(i)) && seen / 2 == n && !(seen & 1)
          :: (known & BIT(i)) && seen / 2 > n -> goto is_out
          :: (known & BIT(i)) && seen / 2 < n -> assert(false) /* the verdict is not there yet */
          fi;
          i++
        }
     :: i == MEMBERS -> break
     od;
     atomic {
       if
       :: left[n] == 0 -> left[n] = set
       :: else -> assert(left[n] == set) /* all get the same */
       fi;
       assert(!(set & out[n - 1])); /* nobody comes back */
       i = 0;
       do
       :: i < MEMBERS && (known & BIT(i)) && !(set & BIT(i)) ->
          assert(TIMEOUTS > 0 || dead[i]); /* who lives and comes is not left out */
          i++
       :: i < MEMBERS && !((known & BIT(i)) && !(set & BIT(i))) -> i++
       :: i == MEMBERS -> break
       od;
       out[n] = out[n - 1] | (known & ~set);
       if
       :: !(set & BIT(_pid)) -> goto is_out
       :: else
       fi;
#ifndef MUTANT_FORGET
       known = set
#endif
     }
     atomic { /* the slot of the new team: the first one counts */
       MAY_DIE;
       seen = made
     }
     if
     :: seen / SLOTS < n ->
        atomic {
          MAY_DIE;
          if
          :: MAKES_SLOT -> made = n * SLOTS + 1 + _pid
          :: else
          fi
        }
     :: else
     fi;
     atomic {
       MAY_DIE;
       seen = made;
       if
       :: seen / SLOTS > n -> goto is_out
       :: seen / SLOTS < n -> assert(false)
       :: seen / SLOTS == n ->
          if
          :: slot[n] == 0 -> slot[n] = seen
          :: else -> assert(slot[n] == seen)
          fi
       fi;
       n++
     }
  :: else -> break
  od;
is_out: /* its next calls on the team fail */
#ifdef MUTANT_FORGET
  /* It begins the next shrink like the others, who wait for it. */
  if
  :: n < SHRINKS -> begun[_pid] = n + 1
  :: else
  fi;
#endif
has_died:
  skip
}
