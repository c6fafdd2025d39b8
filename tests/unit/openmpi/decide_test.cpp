// SPDX-License-Identifier: Apache-2.0
// The decision that members derive from the table of all their offers.
#include "gba_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace {

using Offers = std::vector<gba_ompi_offer_t>;
using testing::ElementsAre;

gba_ompi_offer_t offer(int node, std::uint32_t local_rank, std::uint32_t holder, int error = 0) {
  gba_ompi_offer_t made{};
  made.node = node;
  made.local_rank = local_rank;
  made.holder = holder;
  made.error = error;
  return made;
}

gba_ompi_decision_t decide(const Offers& offers) {
  return gba_ompi_decide(offers.data(), static_cast<int>(offers.size()));
}

/// Two nodes of three members. On the first node, the second member shares the port of the third one; on the second
/// node, the other two members share the port of the first one.
const Offers kNodes{offer(0, 0, 0), offer(1, 0, 0), offer(0, 3, 2), offer(0, 2, 2), offer(1, 5, 0), offer(1, 4, 0)};
constexpr int kMembers = 6;

std::vector<std::uint32_t> sharers(int holder) {
  std::vector<std::uint32_t> places(kMembers);
  places.resize(gba_ompi_sharers(kNodes.data(), kMembers, holder, places.data()));
  return places;
}

TEST(Decision, UsesTheDeviceIfAllCan) {
  EXPECT_EQ(decide({offer(0, 0, 0), offer(0, 1, 1)}).reason, GBA_OMPI_USED);
  EXPECT_EQ(decide(kNodes).reason, GBA_OMPI_USED);
}

TEST(Decision, NamesTheFirstMemberThatCannot) {
  const auto decision = decide({offer(0, 0, 0), offer(0, 1, 1, -EACCES), offer(0, 2, 2, -ENODEV)});
  EXPECT_EQ(decision.reason, GBA_OMPI_NO_DEVICE);
  char text[128];
  gba_ompi_decision_text(&decision, text, sizeof text);
  EXPECT_STREQ(text, "rank 1 cannot use a device (Permission denied)");
}

TEST(Decision, RefusesPortsWhoseHolderIsNotAMember) {
  const auto decision = decide({offer(0, 0, 0), offer(0, 3, 1)});
  EXPECT_EQ(decision.reason, GBA_OMPI_NO_HOLDER);
  EXPECT_EQ(decision.member, 1);
  char text[128];
  gba_ompi_decision_text(&decision, text, sizeof text);
  EXPECT_STREQ(text, "rank 1 shares the port of a process that is not a member");
}

/// A local rank counts within its node: the same rank on another node is another process.
TEST(Decision, UsesNoHolderOfAnotherNode) {
  EXPECT_EQ(decide({offer(0, 0, 0), offer(1, 1, 0)}).reason, GBA_OMPI_NO_HOLDER);
}

/// Members that may share any port are spread over the holders of their node.
TEST(Table, SpreadsMembersThatMayShareAnyPort) {
  const auto any = [](int node, std::uint32_t local_rank) { return offer(node, local_rank, GBA_OMPI_ANY_HOLDER); };
  const Offers offers{any(0, 0), offer(0, 1, 1), offer(2, 0, 0), any(0, 2), any(2, 1), offer(0, 3, 3), any(0, 4)};
  const std::vector<int> holders{1, 1, 2, 5, 2, 5, 1};
  const int members = static_cast<int>(offers.size());
  for (int member = 0; member < members; ++member) {
    EXPECT_EQ(gba_ompi_holder_of(offers.data(), members, member), holders.at(static_cast<std::size_t>(member)));
  }
  EXPECT_EQ(decide(offers).reason, GBA_OMPI_USED);
}

TEST(Decision, RefusesMembersThatCanShareNoPort) {
  const auto decision = decide({offer(0, 0, 0), offer(1, 1, GBA_OMPI_ANY_HOLDER)});
  EXPECT_EQ(decision.reason, GBA_OMPI_NO_DEVICE);
  EXPECT_EQ(decision.member, 1);
  EXPECT_EQ(decision.error, -EBUSY);
}

TEST(Table, FindsTheHolderOfEachPort) {
  const std::vector<int> holders{0, 1, 3, 3, 1, 1};
  for (int member = 0; member < kMembers; ++member) {
    EXPECT_EQ(gba_ompi_holder_of(kNodes.data(), kMembers, member), holders.at(static_cast<std::size_t>(member)));
  }
  EXPECT_EQ(gba_ompi_holders(kNodes.data(), kMembers), 3U);
  EXPECT_EQ(gba_ompi_holders(kNodes.data(), 3), 2U); /* member 3 is number 2 of the group */
}

TEST(Table, CountsThePlacesOnABoard) {
  EXPECT_EQ(gba_ompi_locals(kNodes.data(), kMembers, 0), 3U);
  EXPECT_EQ(gba_ompi_locals(kNodes.data(), 5, 1), 2U);
  EXPECT_THAT(sharers(0), ElementsAre());
  EXPECT_THAT(sharers(3), ElementsAre(1));
  EXPECT_THAT(sharers(1), ElementsAre(1, 2));
}

TEST(Table, FindsTheLeadersOfOtherNodes) {
  std::vector<std::uint32_t> leaders(kMembers);
  EXPECT_EQ(gba_ompi_remote_leaders(kNodes.data(), kMembers, 2, leaders.data()), 1U);
  EXPECT_EQ(leaders[0], 1U);
  EXPECT_EQ(gba_ompi_remote_leaders(kNodes.data(), kMembers, 5, leaders.data()), 1U);
  EXPECT_EQ(leaders[0], 0U);
}

}  // namespace
