// SPDX-License-Identifier: Apache-2.0
/* The memory orders of doorbell, flag, WAKEUP and vote words, and of the blocks of an exchange, in the memory model of
 * C++, which is weaker than that of any processor. A word keeps all its values. A thread has a view: the oldest value
 * of each word that it may still read. A release store passes the view on with its value, any other store that of the
 * thread's last fence; an acquire load takes it over, any other load at the thread's next fence. Sequentially
 * consistent fences also exchange views through one that all threads share. A load without such an order may read any
 * value from the view on.
 *
 * There is one litmus test for each of the definitions RELEASE, END_BY_WORDS, WAKE_UP, ENTRY, STALE and LEASE. -DWEAK_x
 * removes the order of one access, or one fence; then the test must fail.
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
byte fenced[THREADS * WORDS];        /* the view at the thread's last fence */
byte pending[THREADS * WORDS];       /* what the next fence takes over */

#define VALUE(word, i) value[(word) * VALUES + (i)]
#define PASSED(word, i, of) passed[((word) * VALUES + (i)) * WORDS + (of)]
#define VIEW(of) view[_pid * WORDS + (of)]
#define FENCED(of) fenced[_pid * WORDS + (of)]
#define PENDING(of) pending[_pid * WORDS + (of)]
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
    :: i < WORDS -> PASSED(word, last[word], i) = (order == ORDERED || i == word -> VIEW(i) : FENCED(i)); i++
    :: else -> break
    od;
    i = 0
  }
}

inline take_over(word, order) {
  i = 0;
  do
  :: i < WORDS ->
     PENDING(i) = NEWER(PENDING(i), PASSED(word, VIEW(word), i));
     VIEW(i) = (order == ORDERED && i != word -> NEWER(VIEW(i), PASSED(word, VIEW(word), i)) : VIEW(i));
     i++
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
      common[i] = NEWER(common[i], NEWER(VIEW(i), PENDING(i)));
      VIEW(i) = common[i];
      FENCED(i) = common[i];
      i++
    :: else -> break
    od;
    i = 0
  }
}

inline acquire_fence() {
  d_step {
    i = 0;
    do
    :: i < WORDS -> VIEW(i) = NEWER(VIEW(i), PENDING(i)); i++
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

#ifdef WEAK_FILL
#define FILL_ORDER RELAXED
#else
#define FILL_ORDER ORDERED
#endif
#ifdef WEAK_VALID
#define VALID_ORDER RELAXED
#else
#define VALID_ORDER ORDERED
#endif
#ifdef WEAK_EPOCH
#define EPOCH_ORDER RELAXED
#else
#define EPOCH_ORDER ORDERED
#endif
#ifdef WEAK_FIELDS
#define FIELDS_ORDER RELAXED
#else
#define FIELDS_ORDER ORDERED
#endif
#ifdef WEAK_WITHDRAW
#define withdraw_fence() skip
#else
#define withdraw_fence() fence()
#endif
#ifdef WEAK_AFTER_READS
#define after_reads() skip
#else
#define after_reads() acquire_fence()
#endif
#ifdef WEAK_READER
#define reader_fence() skip
#else
#define reader_fence() fence()
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

/* An exchange (kv/exchange): the owner of a block makes its entry invalid by an odd epoch and valid by the next even one.
 * Epoch 2 is published over what was withdrawn as epoch 0, with another entry and other bytes. */
#define EPOCH 0
#define FIELDS 1
#define BYTES 2
#define LEASED 3

#ifdef ENTRY
/* DirectoryWriter::publish and DirectoryReader::read: an entry that is read is that of its epoch, and so are the bytes
 * of the block, which are written before. Without the fence of the withdrawal, which may be another thread's. */
active proctype owner() {
  byte i;
  store(BYTES, 2, RELAXED);
  store(EPOCH, 1, RELAXED);
  store(FIELDS, 2, FILL_ORDER);
  store(EPOCH, 2, VALID_ORDER)
}

active proctype reader() {
  byte i, epoch, fields, bytes, still;
  load(EPOCH, epoch, EPOCH_ORDER);
  load(FIELDS, fields, FIELDS_ORDER);
  load(EPOCH, still, RELAXED);
  if
  :: epoch % 2 == 0 && still == epoch ->
     assert(fields == epoch);
     load(BYTES, bytes, RELAXED);
     assert(bytes >= epoch)
  :: else
  fi
}
#endif

#ifdef STALE
/* DirectoryWriter::withdraw and Peer::Batch::pull: bytes that have changed, since a lease was over, do not pass for
 * those of the epoch. */
active proctype owner() {
  byte i;
  store(EPOCH, 1, RELAXED);
  withdraw_fence();
  store(BYTES, 1, RELAXED)
}

active proctype reader() {
  byte i, bytes, still;
  load(BYTES, bytes, RELAXED);
  after_reads();
  load(EPOCH, still, RELAXED);
  assert(still != 0 || bytes == 0)
}
#endif

#ifdef LEASE
/* The same and Peer::lease: a block does not change while a reader has a lease of it. One of the two sees the other. */
bit reads;

active proctype owner() {
  byte i, leased;
  store(EPOCH, 1, RELAXED);
  withdraw_fence();
  load(LEASED, leased, ORDERED);
  if
  :: leased == 0 -> assert(!reads); store(BYTES, 1, RELAXED)
  :: else
  fi
}

active proctype reader() {
  byte i, epoch, bytes;
  store(LEASED, 1, RELAXED);
  reader_fence();
  load(EPOCH, epoch, EPOCH_ORDER);
  if
  :: epoch == 0 ->
     reads = 1;
     load(BYTES, bytes, RELAXED);
     assert(bytes == 0);
     reads = 0;
     store(LEASED, 0, ORDERED)
  :: else
  fi
}
#endif
