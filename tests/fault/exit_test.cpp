// SPDX-License-Identifier: Apache-2.0
// A PE calls exit() while threads, streams or cores of it are in the library: the job ends at once, with that status.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

struct Nodes {
  const char* name;
  bool several;
};
std::ostream& operator<<(std::ostream& out, const Nodes& nodes) {
  return out << nodes.name;
}

const Words kNetwork{"SHMEM_GBA=off", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"};

Outcome run_exit(bool several_nodes, const Words& arguments) {
  Words command{several_nodes ? "shmem_pes" : test_program("shmem_pes")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // Every PE is a node of its own, so that PE 1 uses the network.
  command = several_nodes ? on_nodes("% 2", command) : command;
  command.insert(command.begin(), {"--grace", "20"});  // PE 1 runs its destructors after it has announced its end
  return run(oshrun(2, "off", command), kNetwork);
}

class Exit : public TestWithParam<std::tuple<Nodes, const char*>> {
 protected:
  void SetUp() override {
    if (std::get<Nodes>(GetParam()).several && !has_network()) {
      GTEST_SKIP() << kNoNetwork;
    }
  }
};

TEST_P(Exit, EndsTheJobWithItsStatus) {
  const auto& [nodes, way] = GetParam();
  for (int i = 0; i < repeats(3, 100); ++i) {
    for (const int status : {3, 1}) {
      const auto job = run_exit(nodes.several, {"exit", way, std::to_string(status)});
      ASSERT_EQ(job.exit.code, status) << job.output;
      EXPECT_THAT(job.output,
                  ContainsRegex("oshrun: PE 1 \\(pid [0-9]+\\) on [^ ]+ exited with status " + std::to_string(status)));
      EXPECT_THAT(job.output, Not(HasSubstr("terminate called")));
      EXPECT_EQ(count_of(job.output, "destroyed\n"), 1) << job.output;
    }
  }
}

/// Other threads are in the library: what it uses must stay until the process has ended.
TEST(ExitBesideThreads, TakesNoLibraryDown) {
  for (const char* way : {"on-stream", "on-core", "in-thread", "beside-threads"}) {
    const auto job = run_exit(false, {"exit", way, "3", LATE_LIBRARY});
    EXPECT_EQ(job.exit.code, 3) << way << ": " << job.output;
    EXPECT_THAT(job.output, Not(HasSubstr("taken down"))) << way;
  }
  EXPECT_THAT(run_exit(false, {"exit", "main", "3", LATE_LIBRARY}).output, HasSubstr("taken down"));
}

class ExitInWork : public Exit {};

/// The PE cannot leave the job: its own work, from which it exits, is not over.
TEST_P(ExitInWork, WithStatus0IsNoOrderlyEnd) {
  const auto& [nodes, way] = GetParam();
  const auto job = run_exit(nodes.several, {"exit", way, "0"});
  EXPECT_EQ(job.exit.code, 1) << job.output;
  EXPECT_THAT(job.output, Not(HasSubstr("terminate called")));
  EXPECT_THAT(job.output, HasSubstr("PE 1"));
}

class ExitOfAll : public TestWithParam<Nodes> {};

TEST_P(ExitOfAll, WithStatus0BesideThreadsIsAnOrderlyEnd) {
  if (GetParam().several && !has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  for (int i = 0; i < repeats(5, 100); ++i) {
    const auto job = run_exit(GetParam().several, {"exit_all"});
    ASSERT_EQ(job.exit.code, 0) << job.output;
    EXPECT_EQ(job.output, "");
  }
}

constexpr Nodes kOne{"node", false};
constexpr Nodes kTwo{"nodes", true};
INSTANTIATE_TEST_SUITE_P(Ways, Exit,
                         Combine(Values(kOne, kTwo), Values("main", "stream-word", "stream-barrier", "on-stream",
                                                            "on-core", "in-thread", "beside-threads")),
                         kNameByParameters);
// On several nodes the thread cannot go on once the others have been told, and oshrun ends the process.
INSTANTIATE_TEST_SUITE_P(Handlers, Exit, Combine(Values(kOne), Values("handler")), kNameByParameters);
INSTANTIATE_TEST_SUITE_P(Ways, ExitInWork, Combine(Values(kOne, kTwo), Values("on-stream", "on-core")),
                         kNameByParameters);
INSTANTIATE_TEST_SUITE_P(Ways, ExitOfAll, Values(kOne, kTwo), kNameByParameters);

}  // namespace
