// SPDX-License-Identifier: Apache-2.0
// Barriers of teams on several hosts go by the algorithm that was chosen, and everything that the library says about
// them says so.
#include <fstream>
#include <iterator>

#include "shmem/config/barrier_choice.hpp"
#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What runs between nodes.
std::string between_nodes(const std::string& asked) {
  return asked == "dissemination" ? "npu_v1" : asked;
}

int size_of(const JobOnHosts& job) {
  return static_cast<int>(job.size());
}

class AlgorithmOfHosts : public OnHosts {
 protected:
  static void expect_clean(const JobOnHosts& job) { ASSERT_THAT(job.codes(kLimit), Each(0)) << job.output(); }
};

TEST_F(AlgorithmOfHosts, IsTheOneOfTheEnvironmentInAllThatIsSaid) {
  const Hosts hosts(3);
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    SCOPED_TRACE(spec.name);
    const TempDir dir;
    const std::string trace = dir.file("trace.json");
    const JobOnHosts job(hosts, {0, 0, 1, 2}, {test_program("shmem_pes"), "algorithm"},
                         {std::string("SHMEM_BARRIER_ALGORITHM=") + spec.name, "SHMEM_BARRIER_RADIX=3", "SHMEM_INFO=1",
                          "SHMEM_TRACE=" + trace});
    expect_clean(job);
    const std::string name = between_nodes(spec.name);
    EXPECT_EQ(count_of(job.output(), "algorithm " + name + ", "), size_of(job)) << job.output();
    EXPECT_EQ(count_of(job.output(), "none early, counted, waited some time"), size_of(job)) << job.output();
    EXPECT_THAT(job.pe(0).output(), HasSubstr("barrier " + name + " (SHMEM_BARRIER_ALGORITHM); its 3 nodes"));
    EXPECT_THAT(job.pe(0).output(), HasSubstr("the 2 PEs of this node arrive by " + std::string(spec.name)));
    EXPECT_THAT(job.pe(0).output(), HasSubstr(" " + name + ")"));  // "(44 npu_v1)": of the statistics
    if (name != spec.name) {
      EXPECT_EQ(count_of(job.output(), "algorithm npu_v1, reason \"PE 0 (on h0): SHMEM_GBA=off; npu_v1 instead of"),
                size_of(job))
          << job.output();
    }
    const std::string events = text_of(trace) + text_of(trace + ".1") + text_of(trace + ".2");  // one for each node
    EXPECT_GE(count_of(events, R"("path":")" + name + "\""), 40 * size_of(job));
    EXPECT_EQ(count_of(events, R"("path":")"), count_of(events, R"("path":")" + name + "\""));
    EXPECT_THAT(events, HasSubstr("team 0 (4 PEs)"));
  }
}

TEST_F(AlgorithmOfHosts, IsSetByThePrograms) {
  const Hosts hosts(2);
  std::vector<std::string> command{test_program("shmem_pes"), "algorithm", "set"};
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    command.emplace_back(spec.name);
  }
  command.emplace_back("auto");
  const JobOnHosts job(hosts, {0, 0, 0, 1, 1}, command);
  expect_clean(job);
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    EXPECT_GE(count_of(job.output(), "algorithm " + between_nodes(spec.name) + ", "), size_of(job)) << job.output();
  }
  EXPECT_EQ(count_of(job.output(), "none early, counted"), size_of(job) * static_cast<int>(command.size() - 3));
}

/// 20 barriers by each, twice; the rest are the team's own, by npu_v1 here.
TEST_F(AlgorithmOfHosts, IsNamedByAKernelForEachBarrier) {
  const Hosts hosts(3);
  std::vector<std::string> command{test_program("shmem_pes"), "algorithm", "name"};
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    command.emplace_back(spec.name);
  }
  const JobOnHosts job(hosts, {0, 0, 1, 2}, command, {"SHMEM_INFO=1", "SHMEM_BARRIER_ALGORITHM=npu_v1"});
  expect_clean(job);
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    const std::string name = between_nodes(spec.name);
    if (name == spec.name && name != "npu_v1") {
      EXPECT_THAT(job.pe(0).output(), HasSubstr("40 " + name));
    }
  }
}

/// Also if the team's own barriers go through a device.
TEST_F(AlgorithmOfHosts, IsNamedByAKernelDespiteADevice) {
  const Hosts hosts(2);
  const FakeDevice device;
  const JobOnHosts job(hosts, {0, 0, 1}, {test_program("shmem_pes"), "algorithm", "name", "tournament", "basic"},
                       {"SHMEM_GBA=require", "GBA_DEVICE=" + device.path(), "SHMEM_INFO=1"});
  expect_clean(job);
  EXPECT_THAT(job.pe(0).output(), HasSubstr("40 tournament"));
  EXPECT_THAT(job.pe(0).output(), HasSubstr("40 basic"));
}

TEST_F(AlgorithmOfHosts, IsTheOneOfTheTable) {
  const Hosts hosts(2);
  const TempDir dir;
  std::ofstream(dir.file("table")) << "libshmem-barrier-tuning 1\nalone * basic\noversubscribed * basic\n"
                                      "nodes 1 npu_v3\nnodes * tournament\n";
  const JobOnHosts job(hosts, {0, 0, 1}, {test_program("shmem_pes"), "algorithm"},
                       {"SHMEM_BARRIER_TUNING=" + dir.file("table"), "SHMEM_INFO=1"});
  expect_clean(job);
  EXPECT_EQ(count_of(job.output(), "algorithm tournament, "), size_of(job)) << job.output();
  EXPECT_THAT(job.pe(0).output(), HasSubstr("2 nodes: line 5 of " + dir.file("table")));
  EXPECT_THAT(job.pe(0).output(), HasSubstr("the 2 PEs of this node arrive by basic"));
}

/// The nodes must agree: each would wait for messages that the other one does not send.
TEST_F(AlgorithmOfHosts, IsThatOfTheFirstHostIfTheyAreToldDifferently) {
  const Hosts hosts(3);
  const JobOnHosts job(hosts, {0, 1, 2}, {test_program("shmem_pes"), "algorithm"}, {},
                       {{"SHMEM_BARRIER_ALGORITHM=tournament"},
                        {"SHMEM_BARRIER_ALGORITHM=npu_v2", "SHMEM_BARRIER_RADIX=2"},
                        {"SHMEM_BARRIER_ALGORITHM=central_counter"}});
  expect_clean(job);
  EXPECT_EQ(count_of(job.output(), "algorithm tournament, "), size_of(job)) << job.output();
}

}  // namespace
