// SPDX-License-Identifier: Apache-2.0
// The barrier algorithms by messages, for members that share no memory: the leaders of nodes. A message takes the place
// of a word that one member stores and another one waits for.
//
//   npu_v1              round r: to the member 2^r to the right, from the one 2^r to the left
//   npu_v2              phase p: to the members i * k^p to the right, from those to the left, for i = 1 .. k - 1
//   npu_v3              one round: to and from all others; a member sends the word that the others would read
//   central_counter     member 0 counts the messages of the others, and sends one to each
//   basic               the same messages, awaited in turn
//   tournament          losers to winners, and back down the tree
//   recursive_doubling  in pairs whose numbers differ in one bit; members beyond a power of two through another one
//   dissemination       as npu_v1: a message is a push, and nothing is left to pull
//   hierarchical        as npu_v1: each node is a group, and leaders of groups synchronise by dissemination
//   adaptive            one of the others, by the number of members
#pragma once

#include <string>
#include <vector>

#include "shmem/config/barrier_choice.hpp"

namespace shmem {

/// A part of a barrier of one member: it sends all of the messages, then waits for all of them.
struct MessageStep {
  std::vector<int> to, from;  // members
};

/// The steps of member `me` of `members`, one after another. Between two members there is at most one message in each
/// direction.
std::vector<MessageStep> message_steps(const NodesChoice& choice, int members, int me);

/// What runs by messages when `asked` is chosen.
constexpr Algorithm by_messages(Algorithm asked) {
  return asked == Algorithm::kDissemination ? Algorithm::kNpuV1 : asked;
}

/// Why that is another algorithm, or that it moves its words another way; "" if there is nothing to say.
std::string message_note(Algorithm asked);

}  // namespace shmem
