// SPDX-License-Identifier: Apache-2.0
// kill -9 of a PE in the middle of a shuffle: the others get an error that names it, and blocks that the plan does not
// write are intact.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <random>

#include "tests/integration/kv/kv_nodes.hpp"
#include "tests/support/job.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"

namespace {

constexpr std::array kKinds{"copy", "move", "cycle", "pairs", "phases"};
constexpr int kPes = 4;
const std::string kProcesses("kv_pes\0killed", 13);  // in their command lines, as /proc has these

/// How many survivors got an error, because they had not finished before.
int survivors_that_heard(const std::string& output) {
  int heard = 0;
  for (int pe = 0; pe < kPes; ++pe) {
    heard += output.find("PE " + std::to_string(pe) + ": -") != std::string::npos;
  }
  return heard;
}

/// When the victim of kill `i` dies, in thousandths of a shuffle. Each third dies before the shuffle can be complete,
/// whatever the load, so that all others get an error; of the rest, chance and load decide.
template <typename Random>
std::string time_of_death(int i, Random& random, unsigned most) {
  return std::to_string(i % 3 == 0 ? 0 : random() % most);
}

/// One job in which a PE is killed. Returns how many of the others got an error.
/// `memory`: "" or the program's last argument.
int kill_one(const std::string& kind, int victim, const std::string& permille, const std::string& gba,
             int pes_a_node = 0, const std::string& memory = "") {
  SCOPED_TRACE(testing::Message() << kind << ", PE " << victim << " after " << permille << " permille, " << pes_a_node
                                  << " PEs on a node " << memory);
  std::vector<std::string> program{test_support::test_program("kv_pes"), "killed", kind, std::to_string(victim),
                                   permille};
  if (!memory.empty()) {
    program.push_back(memory);
  }
  if (pes_a_node != 0) {
    program = kv_test::on_nodes(pes_a_node, program);
  }
  auto command = test_support::oshrun(kPes, gba, program);
  command.insert(command.begin() + 1, {"--grace", "240"});  // the survivors end by themselves
  const auto outcome = test_support::run(command, {"SHMEM_NETWORK_TIMEOUT=30"}, test_support::Seconds{300});
  // UCX may abort a PE that the victim is putting to, in the middle of a put.
  const bool ended = pes_a_node != 0 && outcome.output.find("(ucs_handle_error+") != std::string::npos;
  // A PE that cannot finalize without the victim's answer exits or ends the job, perhaps before oshrun sees the victim.
  const std::string name = "PE " + std::to_string(victim) + " ";
  const bool ended_by_survivor =
      pes_a_node != 0 && outcome.exit.code == 1 &&
      (outcome.output.find("ended the job with status 1: shmem: PE") != std::string::npos ||
       (outcome.output.find("ended the job with status 1: shmem: allgather") != std::string::npos &&
        outcome.output.find("to " + name) != std::string::npos) ||
       (outcome.output.find(" exited with status 1\n") != std::string::npos &&
        outcome.output.find("oshrun: " + name) != std::string::npos));
  EXPECT_TRUE(outcome.exit.code == 128 + SIGKILL || (ended && outcome.exit.code == 128 + SIGABRT) || ended_by_survivor)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("WRONG"), std::string::npos) << outcome.output;
  for (int pe = 0; pe < kPes; ++pe) {
    const bool survives = outcome.output.find("PE " + std::to_string(pe) + ": survives") != std::string::npos;
    EXPECT_TRUE(survives == (pe != victim) || (ended && pe != victim)) << outcome.output;
  }
  return survivors_that_heard(outcome.output);
}

TEST(KvKilled, TheOthersGetAnErrorAndTheirOtherBlocksAreIntact) {
  std::minstd_rand random{std::random_device{}()};
  int heard = 0;
  const int kills = test_support::repeats(test_support::kSanitized ? 5 : 15, 200);
  for (int i = 0; i < kills; ++i) {
    heard += kill_one(kKinds[static_cast<std::size_t>(i) % kKinds.size()], static_cast<int>(random() % kPes),
                      time_of_death(i, random, 1200), i % 2 == 0 ? "fake" : "off");
  }
  EXPECT_GT(heard, kills / 2);
  EXPECT_TRUE(test_support::none_matching(kProcesses));
}

TEST(KvKilled, TheOthersGetAnErrorWithPrivateMemory) {
  std::minstd_rand random{std::random_device{}()};
  int heard = 0;
  const int kills = test_support::repeats(test_support::kSanitized ? 5 : 10, 200);
  for (int i = 0; i < kills; ++i) {
    heard += kill_one(kKinds[static_cast<std::size_t>(i) % kKinds.size()], static_cast<int>(random() % kPes),
                      time_of_death(i, random, 1200), "off", 0, i % 2 == 0 ? "private" : "mixed");
  }
  EXPECT_GT(heard, kills / 2);
  EXPECT_TRUE(test_support::none_matching(kProcesses));
}

TEST(KvKilled, PesOfOtherNodesGetAnError) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  std::minstd_rand random{std::random_device{}()};
  int heard = 0;
  const int kills = test_support::repeats(2, 60);
  for (int i = 0; i < kills; ++i) {
    const std::string kind = i == 0 ? "copy" : kKinds[random() % kKinds.size()];
    heard +=
        kill_one(kind, static_cast<int>(random() % kPes), time_of_death(i, random, 600), "off", i % 2 == 0 ? 2 : 1);
  }
  EXPECT_GT(heard, 0);
  EXPECT_TRUE(test_support::none_matching(kProcesses));
}

}  // namespace
