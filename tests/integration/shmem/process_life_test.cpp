// SPDX-License-Identifier: Apache-2.0
// What the processes of PEs may do besides: fork, start programs, take signals, unload the library.
#include <signal.h>

#include "tests/support/network.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

const Words kNetwork{"SHMEM_GBA=off", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"};

/// Two PEs that find each other by an address, without a launcher that would notice the death of one.
class Pair {
 public:
  Pair(const Words& part, bool several_nodes, const Words& more = {}) {
    const std::string place = "SHMEM_UID_SESSION_ID=127.0.0.1:" + std::to_string(free_loopback_port());
    for (int pe = 0; pe < 2; ++pe) {
      const std::string number = std::to_string(pe);
      Words environment = kNetwork;
      environment.insert(environment.end(),
                         {"SHMEM_BOOTSTRAP=uid", place, "SHMEM_UID_SIZE=2", "SHMEM_UID_RANK=" + number,
                          "SHMEM_BARRIER_TIMEOUT=0", "CHILDREN_LIVE_WITH=" + dir_.path()});
      environment.insert(environment.end(), more.begin(), more.end());
      if (several_nodes) {
        environment.push_back("SHMEM_HOST_ID=node" + number);
      }
      Words command{test_program("shmem_pes")};
      command.insert(command.end(), part.begin(), part.end());
      pes_.push_back(std::make_unique<Process>(command, environment));
    }
  }
  Process& pe(int pe) { return *pes_[static_cast<std::size_t>(pe)]; }
  std::string output() { return pes_[0]->output() + pes_[1]->output(); }

 private:
  TempDir dir_;
  std::vector<std::unique_ptr<Process>> pes_;
};

using Case = std::tuple<const char*, int, bool>;
class ChildOfAKilledPe : public TestWithParam<Case> {};

TEST_P(ChildOfAKilledPe, DoesNotKeepTheOthersWaiting) {
  const auto [way, victim, several_nodes] = GetParam();
  if (several_nodes && !has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  Pair pair({"leave_child", way, std::to_string(victim)}, several_nodes);
  const auto killed = pair.pe(victim).wait(Seconds{120});
  ASSERT_TRUE(killed) << pair.output();
  ASSERT_EQ(killed->signal, SIGKILL) << pair.output();
  const auto other = pair.pe(1 - victim).wait(Seconds{60});
  ASSERT_TRUE(other) << "it still waits: " << pair.output();
  EXPECT_EQ(other->code, 1) << pair.output();
  EXPECT_THAT(pair.pe(1 - victim).output(), HasSubstr("PE " + std::to_string(victim)));
}

INSTANTIATE_TEST_SUITE_P(Ways, ChildOfAKilledPe, Combine(Values("fork", "daemon", "program"), Values(0, 1), Bool()),
                         kNameByParameters);

class ChildOfALostPe : public TestWithParam<const char*> {};

/// The network alone tells that the PE is gone.
TEST_P(ChildOfALostPe, DoesNotHideItsLossFromTheOthers) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  Pair pair({"leave_child_survive", GetParam()}, true);
  const auto killed = pair.pe(1).wait(Seconds{120});
  ASSERT_TRUE(killed) << pair.output();
  const auto other = pair.pe(0).wait(Seconds{60});
  ASSERT_TRUE(other) << "it still waits: " << pair.output();
  EXPECT_EQ(other->code, 0) << pair.output();
}

INSTANTIATE_TEST_SUITE_P(Ways, ChildOfALostPe, Values("fork", "daemon", "program"), kNameByParameters);

TEST(ThreadsOfTheLibrary, BlockAllSignalsButThoseOfRemovedMemory) {
  const auto on_one = run_clean(2, "fake", {"shmem_pes", "thread_masks"});
  EXPECT_THAT(on_one.output, HasSubstr(" threads"));
  Words network = kNetwork;
  network.erase(network.begin());
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  run_clean(2, "fake", on_nodes("% 2", {"shmem_pes", "thread_masks"}), network);
}

TEST(ProgramsOfPes, DoNotGetTheSecretOfTheJob) {
  Pair pair({"prints_environment"}, false, {"SHMEM_UID_SECRET=quite-a-secret"});
  for (int pe = 0; pe < 2; ++pe) {
    const auto exit = pair.pe(pe).wait(Seconds{120});
    ASSERT_TRUE(exit && exit->clean()) << pair.output();
    EXPECT_THAT(pair.pe(pe).output(), AllOf(HasSubstr("SHMEM_UID_RANK="), Not(HasSubstr("quite-a-secret"))));
  }
}

TEST(ExitHandlers, MayGetErrorsOfTheLibrary) {
  const auto job = run_clean(1, "off", {"shmem_pes", "late_error"});
  EXPECT_THAT(job.output, HasSubstr("early: an error\n"));
  EXPECT_THAT(job.output, HasSubstr("late: \"\"\n"));
}

TEST(Container, ThatRefusesMemoryPoliciesIsNoReasonToPrint) {
  const auto job = run_pes(2, "off", {"shmem_pes", "no_memory_policies"});
  if (job.output.find("no seccomp") != std::string::npos) {
    GTEST_SKIP() << job.output;
  }
  EXPECT_TRUE(job.exit.clean());
  EXPECT_EQ(job.output, "");
}

TEST(Library, MayBeUnloadedAfterItsEnd) {
  const auto program = run({test_program("unloads_library"), SHMEM_LIBRARY}, {"SHMEM_GBA=off"});
  EXPECT_TRUE(program.exit.clean()) << program.output;
  EXPECT_EQ(program.output, "unloaded\n");
}

}  // namespace
