// SPDX-License-Identifier: Apache-2.0
// Nodes that do not match or that fail: every PE names the node and ends in time.
#include <signal.h>

#include <fstream>

#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using BadNodes = OnHosts;

const auto kFailed = Each(AllOf(Ne(0), Ne(1000)));

/// UCX 1.13 prints its own messages for processes that it aborts.
const auto kNoneOfUcx = Not(HasSubstr("ucs_handle_error"));

/// Kills a PE when all have said `ready`, and some time has passed.
void expect_named(const char* action, std::size_t victim, const char* ready = "ready",
                  std::chrono::milliseconds later = {}, const JobOnHosts::Environment& environment = {}) {
  const Hosts hosts(3);
  const JobOnHosts job(hosts, {0, 1, 2}, {test_program("shmem_pes"), "net", action}, environment);
  ASSERT_TRUE(job.all_say(ready)) << action << '\n' << job.output();
  std::this_thread::sleep_for(later);
  job.pe(victim).signal(SIGKILL);
  EXPECT_THAT(job.codes(), kFailed) << action << '\n' << job.output();
  for (std::size_t pe = 0; pe < 3; ++pe) {
    if (pe != victim) {
      const auto named = HasSubstr("PE " + std::to_string(victim));
      EXPECT_THAT(job.pe(pe).output(), AllOf(named, kNoneOfUcx)) << action;
    }
  }
}

TEST_F(BadNodes, AreNamedWhenAPeDies) {
  for (const char* action : {"get", "put", "add", "barrier", "wait"}) {
    expect_named(action, 1);
  }
}

TEST_F(BadNodes, AreNamedWhenAPeDiesInTheMiddleOfALargeCopy) {
  for (const char* action : {"get_large", "put_large"}) {
    expect_named(action, 1, "copies", std::chrono::milliseconds(20), {"SHMEM_SYMMETRIC_SIZE=80M"});
  }
}

/// All other PEs are connected to PE 0 from the start.
TEST_F(BadNodes, AreNamedWhenTheFirstPeDies) {
  for (const char* action : {"get", "put", "add"}) {
    expect_named(action, 0);
  }
}

TEST_F(BadNodes, AreNamedWhenTheyAreFrozen) {
  const Hosts hosts(3);
  const auto by_others = ContainsRegex("PE 1 \\(on h1\\) and timed out after [0-9]+ s");
  // The other PEs told it, or it finds that its own wait took too long.
  const auto by_itself = AllOf(HasSubstr("PE 1 (on h1)"), ContainsRegex("timed out after [0-9]+ s"));
  const Matcher<const Ended&> expected =
      AllOf(Field(&Ended::codes, kFailed), Field(&Ended::outputs, ElementsAre(by_others, by_itself, by_others)));
  for (const char* action : {"get", "put"}) {
    const auto run_for = [&](int seconds) {
      const JobOnHosts job(hosts, {0, 1, 2}, {test_program("shmem_pes"), "net", action},
                           {"SHMEM_NETWORK_TIMEOUT=" + std::to_string(seconds)});
      if (!job.all_say("ready")) {
        return ended(job);
      }
      job.pe(1).signal(SIGSTOP);
      const bool others_end = job.pe(0).wait(JobOnHosts::kTimeLimit) && job.pe(2).wait(JobOnHosts::kTimeLimit);
      job.pe(1).signal(SIGCONT);
      return others_end ? ended(job) : Ended{};
    };
    EXPECT_THAT(with_timeouts(run_for, [&](const Ended& job) { return expected.Matches(job); }), expected) << action;
  }
}

TEST_F(BadNodes, AreNamedWhenTheyCannotBeReachedAtStart) {
  const Hosts hosts(2);
  hosts.link_down(1);
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "hello"}, {"SHMEM_BOOTSTRAP_TIMEOUT=2"});
  EXPECT_THAT(job.codes(), kFailed) << job.output();
  EXPECT_THAT(job.pe(0).output(), HasSubstr("PE 1 did not arrive within 2 s"));
  EXPECT_THAT(job.pe(1).output(), HasSubstr("cannot reach the job at " + Hosts::ipv4(0) + ":7000"));
}

TEST_F(BadNodes, AreNamedWhenARouteTakesOnlyTheFirstMessages) {
  const Hosts hosts(2);
  // Only packets to and from PE 0's port pass.
  for (const int host : {0, 1}) {
    const std::string port = host == 0 ? "sport" : "dport";
    const auto rules =
        hosts.run(host, {"sh", "-c",
                         "ip rule add pref 10 ipproto tcp " + port + " 7000 lookup main && ip rule add pref 20 to " +
                             Hosts::ipv4(1 - host) + " ipproto tcp blackhole"});
    if (!rules.exit.clean()) {
      GTEST_SKIP() << "no ip rules for ports here: " << rules.output;
    }
  }
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "hello"}, {"SHMEM_NETWORK_TIMEOUT=3"});
  EXPECT_THAT(job.codes(), kFailed) << job.output();
  EXPECT_THAT(job.pe(0).output(), HasSubstr("PE 1 (on h1)"));
  EXPECT_THAT(job.pe(1).output(), HasSubstr("PE 0"));
}

TEST_F(BadNodes, GetAnErrorIfAnotherJobHasTheirPort) {
  const Hosts hosts(2);
  // Waits for its PE 1, which is never started.
  const JobOnHosts first(hosts, {0}, {test_program("shmem_pes"), "net", "hello"},
                         {"SHMEM_UID_SIZE=2", "SHMEM_UID_SECRET=first", "SHMEM_BOOTSTRAP_TIMEOUT=600"});
  ASSERT_TRUE(hosts.run(0, {"sh", "-c", "until ss -Hltn | grep -q :7000; do sleep 0.01; done"}).exit.clean());
  const auto place = HasSubstr(Hosts::ipv4(0) + ":7000");
  const Matcher<const Ended&> expected =
      AllOf(Field(&Ended::codes, kFailed),
            Field(&Ended::outputs, ElementsAre(AllOf(place, HasSubstr("Address already in use")),
                                               AllOf(place, HasSubstr("does not have the secret of that job")))));
  const auto run_for = [&](int seconds) {
    const JobOnHosts second(hosts, {0, 1}, {test_program("shmem_pes"), "net", "hello"},
                            {"SHMEM_UID_SECRET=second", "SHMEM_BOOTSTRAP_TIMEOUT=" + std::to_string(seconds)});
    return ended(second);
  };
  EXPECT_THAT(with_timeouts(run_for, [&](const Ended& job) { return expected.Matches(job); }), expected);
}

TEST_F(BadNodes, AreNamedForTheirHeapSizes) {
  const Hosts hosts(2);
  // Different between nodes, and within one node.
  for (const auto& host_of : {std::vector{0, 1, 1}, {0, 1, 0}}) {
    const JobOnHosts job(hosts, host_of, {test_program("shmem_pes"), "net", "hello"}, {},
                         {{}, {"SHMEM_SYMMETRIC_SIZE=32M"}, {"SHMEM_SYMMETRIC_SIZE=32M"}});
    EXPECT_THAT(job.codes(), kFailed) << job.output();
    for (const std::size_t pe : {0U, 1U, 2U}) {
      EXPECT_THAT(job.pe(pe).output(),
                  AllOf(HasSubstr("PEs 1, 2 ask for 32 MiB, PE 0 asks for 64 MiB"),
                        HasSubstr(host_of[2] == 1 ? "PE 0 is on h0, PEs 1, 2 are on h1" : "PE 1 is on h1"),
                        HasSubstr("SHMEM_SYMMETRIC_SIZE")))
          << pe;
    }
  }
}

TEST_F(BadNodes, AreNamedWithoutUcx) {
  const Hosts hosts(2);
  const TempDir dir;
  std::ofstream(dir.file("libucp.so.0")) << "no library\n";
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "hello"}, {},
                       {{}, {"LD_LIBRARY_PATH=" + dir.path()}});
  EXPECT_THAT(job.codes(), kFailed) << job.output();
  for (const std::size_t pe : {0U, 1U}) {
    EXPECT_THAT(job.pe(pe).output(), AllOf(HasSubstr("PE 1 (on h1) has no network to the other nodes"),
                                           HasSubstr("install UCX 1.13 or later on this node")))
        << pe;
  }
}

}  // namespace
