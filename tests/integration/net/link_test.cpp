// SPDX-License-Identifier: Apache-2.0
// Links between nodes that fail: no other path is used, and a wait ends when the link returns, or with a message.
#include <fstream>

#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using LinkOfANode = OnHosts;

int rounds(const JobOnHosts& job) {
  return count_of(job.pe(0).output(), "round");
}

bool goes_on(const JobOnHosts& job) {
  const auto before = rounds(job);
  const auto end = std::chrono::steady_clock::now() + JobOnHosts::kTimeLimit;
  while (rounds(job) < before + 3 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return rounds(job) >= before + 3;
}

TEST_F(LinkOfANode, OnlyPausesTheJobIfItIsDownForAMoment) {
  const Hosts hosts(2);
  const TempDir dir;
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "traffic", dir.file("end")},
                       {"SHMEM_BARRIER_TIMEOUT=60", "SHMEM_NETWORK_TIMEOUT=60"});
  ASSERT_TRUE(goes_on(job)) << job.output();
  const auto before = hosts.traffic(1);
  ASSERT_TRUE(goes_on(job)) << job.output();
  EXPECT_GT(hosts.traffic(1).received, before.received);
  hosts.link_down(1);
  const auto count = rounds(job);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // completes what the kernel has under way
  const auto down = hosts.traffic(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  // PE 0 completes one more round if it has all messages of that.
  EXPECT_LE(rounds(job), count + 1) << "the PEs reach each other over another path";
  EXPECT_EQ(hosts.traffic(1).received, down.received);
  EXPECT_EQ(hosts.traffic(1).sent, down.sent);
  hosts.link_up(1);
  EXPECT_TRUE(goes_on(job)) << job.output();
  std::ofstream(dir.file("end")) << '\n';
  EXPECT_THAT(job.codes(), Each(0)) << job.output();
}

/// Jobs that have ended on all PEs, each of which names the PE that it waited for.
const Matcher<const Ended&> kEndOfBoth =
    AllOf(Field(&Ended::codes, Each(AllOf(Ne(0), Ne(1000)))),
          Field(&Ended::outputs, ElementsAre(HasSubstr("PE 1 (on h1)"), HasSubstr("PE 0"))));

TEST_F(LinkOfANode, EndsTheJobIfItStaysDown) {
  const auto says_why = ContainsRegex("timed out after [0-9]+ s|SHMEM_BARRIER_TIMEOUT");
  const Matcher<const Ended&> expected = AllOf(kEndOfBoth, Field(&Ended::outputs, Contains(says_why)));
  for (const std::string limit : {"SHMEM_BARRIER_TIMEOUT", "SHMEM_NETWORK_TIMEOUT"}) {
    const auto run_for = [&](int seconds) {
      const Hosts hosts(2);
      const TempDir dir;
      const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "traffic", dir.file("end")},
                           {limit + "=" + std::to_string(seconds)});
      if (goes_on(job)) {
        hosts.link_down(1);
        return ended(job);
      }
      return Ended{};
    };
    EXPECT_THAT(with_timeouts(run_for, [&](const Ended& job) { return expected.Matches(job); }), expected) << limit;
  }
}

TEST_F(LinkOfANode, MayTakeLongerFramesThanTheOtherOne) {
  const Hosts hosts(2);
  hosts.set_mtu(0, 9000);
  hosts.set_mtu(1, 1400);
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "large"}, {"SHMEM_NETWORK_TIMEOUT=100"});
  EXPECT_THAT(job.codes(), Each(0)) << job.output();
}

TEST_F(LinkOfANode, EndsTheJobIfTheSwitchDropsLongFrames) {
  const Hosts hosts(2);
  for (const int host : {0, 1}) {
    hosts.set_mtu(host, 9000, 1500);
  }
  const auto run_for = [&](int seconds) {
    const JobOnHosts job(
        hosts, {0, 1}, {test_program("shmem_pes"), "net", "large"},
        {"SHMEM_NETWORK_TIMEOUT=" + std::to_string(seconds), "SHMEM_BOOTSTRAP_TIMEOUT=" + std::to_string(seconds + 4)});
    return ended(job);
  };
  EXPECT_THAT(with_timeouts(run_for, [](const Ended& job) { return kEndOfBoth.Matches(job); }), kEndOfBoth);
}

}  // namespace
