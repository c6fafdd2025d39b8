// SPDX-License-Identifier: Apache-2.0
// The places of the members: nodes, ports and blocks, all constant when spin starts.

#if MEMBERS == 2
#define FOR_EACH(step, with) step(0, with); step(1, with)
#define ALL(condition) (condition(0) && condition(1))
#define ANY(condition) (condition(0) || condition(1))
#define OF(m, of0, of1, of2, of3) ((m) == 0 -> of0 : of1)
#elif MEMBERS == 3
#define FOR_EACH(step, with) step(0, with); step(1, with); step(2, with)
#define ALL(condition) (condition(0) && condition(1) && condition(2))
#define ANY(condition) (condition(0) || condition(1) || condition(2))
#define OF(m, of0, of1, of2, of3) ((m) == 0 -> of0 : ((m) == 1 -> of1 : of2))
#else
#define FOR_EACH(step, with) step(0, with); step(1, with); step(2, with); step(3, with)
#define ALL(condition) (condition(0) && condition(1) && condition(2) && condition(3))
#define ANY(condition) (condition(0) || condition(1) || condition(2) || condition(3))
#define OF(m, of0, of1, of2, of3) ((m) == 0 -> of0 : ((m) == 1 -> of1 : ((m) == 2 -> of2 : of3)))
#endif

// ---- Nodes, numbered in the order of their first members, which are their leaders
#ifndef NODES
#define NODES 1
#endif
#ifndef NODE0
#define NODE0 0
#endif
#ifndef NODE1
#define NODE1 0
#endif
#ifndef NODE2
#define NODE2 0
#endif
#ifndef NODE3
#define NODE3 0
#endif
#define NODE(m) OF(m, NODE0, NODE1, NODE2, NODE3)
#if NODE1 == 1
#define LEADER_OF_NODE_1 1
#else
#define LEADER_OF_NODE_1 2
#endif
#define LEADER(node) ((node) == 0 -> 0 : ((node) == 1 -> LEADER_OF_NODE_1 : 2))

// ---- Blocks, in the same way
#ifndef BLOCKS
#define BLOCKS 1
#endif
#if BLOCKS == 1
#define BLOCK(m) 0
#define WITH_ME(m) true
#ifdef PORT0
#define OWNER(m) PORT0
#else
#define OWNER(m) 0
#endif
#define ALONE(m) false
#else                       // the last members are the second block
#ifndef SECOND_BLOCK
#define SECOND_BLOCK 2
#endif
#define BLOCK(m) ((m) >= SECOND_BLOCK -> 1 : 0)
#define WITH_ME(m) (BLOCK(m) == BLOCK(me))
#define OWNER(m) ((m) >= SECOND_BLOCK -> SECOND_BLOCK : 0)
#define ALONE(m) ((m) == SECOND_BLOCK && MEMBERS == SECOND_BLOCK + 1)
#endif
#define OWNS(m) (OWNER(m) == (m))

// ---- Ports
#ifndef PORT0
#define PORT0 0
#endif
#ifndef PORT1
#define PORT1 1
#endif
#ifndef PORT2
#define PORT2 2
#endif
#ifndef PORT3
#define PORT3 3
#endif
#define HOLDER(m) OF(m, PORT0, PORT1, PORT2, PORT3)
#if PORT0 == 0 && PORT1 == 1 && PORT2 == 2 && PORT3 == 3 && BLOCKS == 1
#define HOLDS(m) true
#elif BLOCKS == 1
#define HOLDS(m) (HOLDER(m) == (m))
#else
#define HOLDS(m) (HOLDER(m) == (m) && !ALONE(m))
#endif
#ifdef OPENERS
#define HAS_WORDS(m) HOLDS(m)
#define IN_TWO_PHASES(n) ((n) % 3 == 1)
#else
#define HAS_WORDS(m) true
#define IN_TWO_PHASES(n) false
#endif

// ---- Members are alike, except member 0 if it makes offers: it is enough that faults hit them in order.
#if PORT0 == 0 && PORT1 == 1 && PORT2 == 2 && PORT3 == 3 && BLOCKS == 1 && NODES == 1 && !defined(ALARM_NODE)
#define FIRST_TO_BE_HIT (P <= LAST -> 1 : 0)
#else
#define FIRST_TO_BE_HIT MEMBERS
#endif
