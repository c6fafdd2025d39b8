// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/message_barrier.hpp"

#include <bit>

namespace shmem {
namespace {

using Steps = std::vector<MessageStep>;

/// One member's position among the others.
struct Position {
  int members, me;

  [[nodiscard]] int right(int distance) const { return (me + distance) % members; }
  [[nodiscard]] int left(int distance) const { return (me + members - distance) % members; }
};

/// Radix 2 is npu_v1.
Steps disseminate(const Position& position, int radix) {
  Steps steps;
  for (int distance = 1; distance < position.members; distance *= radix) {
    MessageStep& phase = steps.emplace_back();
    for (int i = 1; i < radix && i * distance < position.members; ++i) {
      phase.to.push_back(position.right(i * distance));
      phase.from.push_back(position.left(i * distance));
    }
  }
  return steps;
}

Steps to_and_from_all(const Position& position) {
  MessageStep all;
  for (int distance = 1; distance < position.members; ++distance) {
    all.to.push_back(position.right(distance));
    all.from.push_back(position.left(distance));
  }
  return {all};
}

Steps through_member_0(const Position& position) {
  if (position.me != 0) {
    return {{.to = {0}, .from = {0}}};
  }
  MessageStep gather;
  MessageStep release;
  for (int member = 1; member < position.members; ++member) {
    gather.from.push_back(member);
    release.to.push_back(member);
  }
  return {gather, release};
}

Steps tournament(const Position& position) {
  Steps steps;
  MessageStep release;
  int distance = 1;
  for (; distance < position.members && position.me % (2 * distance) == 0; distance *= 2) {
    if (const int loser = position.me + distance; loser < position.members) {
      steps.push_back({.to = {}, .from = {loser}});
      // The one that was beaten last has most members to release.
      release.to.insert(release.to.begin(), loser);
    }
  }
  if (position.me != 0) {
    const int winner = position.me - distance;
    steps.push_back({.to = {winner}, .from = {winner}});
  }
  if (!release.to.empty()) {
    steps.push_back(release);
  }
  return steps;
}

Steps double_recursively(const Position& position) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(position.members)));
  if (position.me >= power) {
    return {{.to = {position.me - power}, .from = {position.me - power}}};
  }
  const int beyond = position.me + power;
  Steps steps;
  if (beyond < position.members) {
    steps.push_back({.to = {}, .from = {beyond}});
  }
  for (int distance = 1; distance < power; distance *= 2) {
    steps.push_back({.to = {position.me ^ distance}, .from = {position.me ^ distance}});
  }
  if (beyond < position.members) {
    steps.push_back({.to = {beyond}, .from = {}});
  }
  return steps;
}

/// The rule of algorithms::adaptive.
Steps adapt(const Position& position, bool oversubscribed) {
  constexpr int kFew = 8;
  if (oversubscribed) {
    return through_member_0(position);
  }
  return position.members <= kFew ? to_and_from_all(position) : double_recursively(position);
}

}  // namespace

std::vector<MessageStep> message_steps(const NodesChoice& choice, int members, int me) {
  if (members < 2) {
    return {};
  }
  const Position position{members, me};
  switch (choice.algorithm) {
    case Algorithm::kNpuV1:
    case Algorithm::kDissemination:
    case Algorithm::kHierarchical:
      return disseminate(position, 2);
    case Algorithm::kNpuV2:
      return disseminate(position, choice.tuning.radix);
    case Algorithm::kNpuV3:
      return to_and_from_all(position);
    case Algorithm::kCentralCounter:
    case Algorithm::kBasic:
      return through_member_0(position);
    case Algorithm::kTournament:
      return tournament(position);
    case Algorithm::kRecursiveDoubling:
      return double_recursively(position);
    case Algorithm::kAdaptive:
      return adapt(position, choice.tuning.oversubscribed);
  }
  return disseminate(position, 2);
}

std::string message_note(Algorithm asked) {
  if (asked == Algorithm::kDissemination) {
    return "npu_v1 instead of dissemination between nodes: messages are pushed, not pulled";
  }
  return asked == Algorithm::kNpuV3 ? "npu_v3 between nodes: words are sent to each node, which cannot pull them" : "";
}

}  // namespace shmem
