// SPDX-License-Identifier: Apache-2.0
/* The memory orders of doorbell, flag, WAKEUP and vote words in the memory model of C++, which is weaker than that of
 * any processor. A word keeps all its values. A thread has a view: the oldest value of each word that it may still
 * read. A release store passes the view on with its value; an acquire load takes it over. Sequentially consistent
 * fences exchange views through one that all threads share. A load without such an order may read any value from the
 * view on.
 *
 * There is one litmus test for each of the definitions RELEASE, END_BY_WORDS and WAKE_UP. -DWEAK_x removes the order of
 * one access, or one fence; then the test must fail.
 */

#define WORDS 4
#define VALUES 12 /* of each word */
#define THREADS 3
#define OLDEST 0

byte value[WORDS * VALUES];
byte passed[WORDS * VALUES * WORDS]; /* the view that a value brings */
byte last[WORDS];                    /* newest value of each word */
byte view[THREADS * WORDS];
byte common[WORDS];                  /* the view that fences share */

#define VALUE(word, i) value[(word) * VALUES + (i)]
#define PASSED(word, i, of) passed[((word) * VALUES + (i)) * WORDS + (of)]
#define VIEW(of) view[_pid * WORDS + (of)]
#define NEWER(a, b) ((a) > (b) -> (a) : (b))

#define RELAXED 0
#define ORDERED 1 /* release of a store, acquire of a load, both of a read-modify-write */

inline store(word, what, order) {
  d_step {
    assert(last[word] < VALUES - 1);
    last[word]++;
    VIEW(word) = last[word];
    VALUE(word, last[word]) = what;
    i = 0;
    do
    :: i < WORDS -> PASSED(word, last[word], i) = (order == ORDERED || i == word -> VIEW(i) : OLDEST); i++
    :: else -> break
    od;
    i = 0
  }
}

inline take_over(word, order) {
  i = 0;
  do
  :: i < WORDS && order == ORDERED -> VIEW(i) = NEWER(VIEW(i), PASSED(word, VIEW(word), i)); i++
  :: else -> break
  od;
  i = 0
}

/* Reads any value from the view on. */
inline load(word, result, order) {
  atomic {
    do
    :: VIEW(word) < last[word] -> VIEW(word)++
    :: break
    od;
    result = VALUE(word, VIEW(word));
    take_over(word, order)
  }
}

/* Reads the newest value and replaces it by 0. */
inline take(word, result, order) {
  d_step {
    VIEW(word) = last[word];
    result = VALUE(word, VIEW(word));
    take_over(word, order)
  }
  store(word, 0, RELAXED)
}

inline fence() {
  d_step {
    i = 0;
    do
    :: i < WORDS ->
      common[i] = NEWER(common[i], VIEW(i));
      VIEW(i) = common[i];
      i++
    :: else -> break
    od;
    i = 0
  }
}

#ifdef WEAK_DOORBELL
#define DOORBELL_ORDER RELAXED
#else
#define DOORBELL_ORDER ORDERED
#endif
#ifdef WEAK_SCAN
#define SCAN_ORDER RELAXED
#else
#define SCAN_ORDER ORDERED
#endif
#ifdef WEAK_FLAG
#define FLAG_ORDER RELAXED
#else
#define FLAG_ORDER ORDERED
#endif
#ifdef WEAK_TEST
#define TEST_ORDER RELAXED
#else
#define TEST_ORDER ORDERED
#endif
#ifdef WEAK_PUBLISH
#define PUBLISH_ORDER RELAXED
#else
#define PUBLISH_ORDER ORDERED
#endif
#ifdef WEAK_READ_WORDS
#define READ_WORDS_ORDER RELAXED
#else
#define READ_WORDS_ORDER ORDERED
#endif
#ifdef WEAK_CLIENT_FENCE
#define client_fence() skip
#else
#define client_fence() fence()
#endif
#ifdef WEAK_DEVICE_FENCE
#define device_fence() skip
#else
#define device_fence() fence()
#endif

#ifdef RELEASE
/* Rules 20 and 25: a released member sees what the others stored before they arrived, including their vote words. */
#define DATA 0
#define VOTE 1
#define DOORBELL 2
#define FLAG 3

active proctype member() {
  byte i;
  store(DATA, 1, RELAXED);
  store(VOTE, 1, PUBLISH_ORDER);
  store(DOORBELL, 1, DOORBELL_ORDER)
}

active proctype device() {
  byte i, seen;
  do
  :: load(DOORBELL, seen, RELAXED);
     if
     :: seen != 0 -> take(DOORBELL, seen, SCAN_ORDER); break
     :: else
     fi
  od;
  store(FLAG, 1, FLAG_ORDER)
}

active proctype released() {
  byte i, seen;
  do
  :: load(FLAG, seen, TEST_ORDER);
     if
     :: seen == 1 -> break
     :: else
     fi
  od;
  load(VOTE, seen, RELAXED);
  assert(seen == 1);
  load(DATA, seen, RELAXED);
  assert(seen == 1)
}
#endif

#ifdef END_BY_WORDS
/* Rules 26 and 30: a member that ends a barrier by words sees what the others stored before they published, including
 * an offer. */
#define DATA 0
#define OFFER 1
#define VOTE 2

active proctype member() {
  byte i;
  store(DATA, 1, RELAXED);
  store(OFFER, 1, RELAXED);
  store(VOTE, 1, PUBLISH_ORDER)
}

active proctype puller() {
  byte i, seen;
  do
  :: load(VOTE, seen, READ_WORDS_ORDER);
     if
     :: seen == 1 -> break
     :: else
     fi
  od;
  load(OFFER, seen, RELAXED);
  assert(seen == 1);
  load(DATA, seen, RELAXED);
  assert(seen == 1)
}
#endif

#ifdef WAKE_UP
/* Rule 14: the device does not sleep while a doorbell is rung, unless it is kicked. Two rounds: in the second one the
 * device has slept before, and the old value of WAKEUP may still be read. The kernel orders a kick and the wake-up by
 * it. */
#define DOORBELL 0
#define WAKEUP 1
#define FLAG 2
#define ROUNDS 2

bit kicked;

active proctype member() {
  byte i, asleep, seen, round;
  for (round : 1 .. ROUNDS) {
    store(DOORBELL, round, DOORBELL_ORDER);
    client_fence();
    load(WAKEUP, asleep, RELAXED);
    if
    :: asleep -> fence(); kicked = 1
    :: else
    fi;
    do
    :: load(FLAG, seen, TEST_ORDER);
       if
       :: seen == round -> break
       :: else -> value[FLAG * VALUES + last[FLAG]] == round /* looks again when there is a new value */
       fi
    od
  }
}

active proctype device() {
  byte i, rung, released;
  do
  :: released == ROUNDS -> break
  :: else ->
     load(DOORBELL, rung, RELAXED);
     if
     :: rung != 0 ->
        take(DOORBELL, rung, SCAN_ORDER);
        released++;
        store(FLAG, released, FLAG_ORDER)
     :: else ->
        store(WAKEUP, 1, RELAXED);
        device_fence();
        load(DOORBELL, rung, RELAXED);
        if
        :: rung == 0 -> atomic { kicked; kicked = 0 }; fence() /* no kick while it is rung: an invalid end state */
        :: else
        fi;
        store(WAKEUP, 0, RELAXED)
     fi
  od
}
#endif
