// SPDX-License-Identifier: Apache-2.0
/* How a collective call of a group on several nodes begins: shmem/collective/staged_nodes.cpp, StagedOnNodes::meet().
 * Each member has an opening: what it is about to do, and its small data. A member gives its opening to the leader of its
 * node through a cell (EagerChannel). The leader writes all of its node to the board, exchanges them with the other
 * leaders by messages, which come at any later time, and releases its node. Then each member reads all openings from the
 * board of its node, at any speed. The board has two halves, used in turns.
 *
 * An opening is modelled by the number of the call that it is for.
 */

#ifndef CALLS
#define CALLS 3
#endif
#define NODES 2
#define HERE 2 /* members of a node; the first one leads */
#define NODE(m) ((m) / HERE)
#define LEADER(n) ((n) * HERE)
#ifdef MUTANT_ONE_HALF
#define HALF(k) 0
#else
#define HALF(k) ((k) % 2)
#endif
#define PLACE(n, k, m) board[((n) * 2 + HALF(k)) * NODES * HERE + (m)]

byte cell[NODES * HERE];                     /* the call that the member has given its opening for */
byte board[NODES * 2 * NODES * HERE];        /* of each node, both halves */
byte released[NODES];                        /* the call that the leader has released its node for */
chan to[NODES] = [2] of { byte, byte };      /* the openings of the other node's members, in order */
byte begun[NODES * HERE];

/* The leader writes the openings of its own node to the board. */
inline collect() {
  PLACE(n, k, _pid) = k;
#ifdef MUTANT_TAKE_WHAT_IS_THERE
  PLACE(n, k, _pid + 1) = cell[_pid + 1];
#else
  cell[_pid + 1] == k;
  PLACE(n, k, _pid + 1) = cell[_pid + 1];
#endif
}

/* Sends what is on the board, and takes what the other leader sends: in any order. */
inline exchange() {
  sent = false;
  taken = false;
  do
  :: atomic { !sent && nfull(to[1 - n]) -> to[1 - n]!PLACE(n, k, LEADER(n)), PLACE(n, k, LEADER(n) + 1); sent = true }
  :: atomic { !taken && nempty(to[n]) -> to[n]?first, second; PLACE(n, k, LEADER(1 - n)) = first;
              PLACE(n, k, LEADER(1 - n) + 1) = second; first = 0; second = 0; taken = true }
  :: sent && taken -> break
  od
}

active [NODES * HERE] proctype Member() {
  byte k = 1, i, first, second;
  byte n = NODE(_pid);
  bool sent, taken;
  do
  :: k <= CALLS ->
    begun[_pid] = k;
    if
    :: _pid == LEADER(n) ->
#ifdef MUTANT_EXCHANGE_BEFORE_TAKING
      PLACE(n, k, _pid) = k;
      exchange();
      collect();
#else
      collect();
#ifdef MUTANT_RELEASE_BEFORE_EXCHANGE
      released[n] = k;
#endif
      exchange();
#endif
      released[n] = k
    :: else ->
      cell[_pid] = k;
#ifndef MUTANT_READ_UNRELEASED
      released[n] == k
#endif
    fi;
    i = 0;
    do
    :: i < NODES * HERE ->
      assert(PLACE(n, k, i) == k);  /* the opening of this call, not an earlier nor a later one */
      assert(begun[i] >= k);        /* a call is a barrier, too */
      assert(begun[i] <= k + 1);    /* which is why two halves are enough */
      i++
    :: else -> break
    od;
    k++
  :: else -> break
  od
}
