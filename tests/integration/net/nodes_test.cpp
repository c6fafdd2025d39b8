// SPDX-License-Identifier: Apache-2.0
// Jobs on several nodes: hosts that the test creates, or nodes that SHMEM_HOST_ID makes of one machine.
#include <array>

#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

struct Places {
  int nodes;
  int each;
};
using Parameters = std::tuple<const char*, const char*, Places>;

class OpenShmemOnNodes : public testing::TestWithParam<Parameters> {};

TEST_P(OpenShmemOnNodes, DoesWhatTheSpecificationSays) {
  const auto& [family, language, places] = GetParam();
  const std::string program = std::string("openshmem_") + language + "_pes";
  run_clean(places.nodes * places.each, "off", on_nodes("/ " + std::to_string(places.each), {program, family}), {},
            kLimit);
}

/// Hosts with networks of their own, which the launcher reaches as by ssh.
TEST_F(OnHosts, OshrunStartsAJobOnAll) {
  const Hosts hosts(3);
  const std::vector<std::string> command{
      program("oshrun"),         "--rsh", hosts.agent(), "-H", "h0:2,h1:2,h2", "--gba", "off",
      test_program("shmem_pes"), "net",   "hello"};
  const auto job = hosts.run(0, command, {"SHMEM_INFO=1", "SHMEM_SYMMETRIC_SIZE=64M"}, kLimit);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("5 PEs"), HasSubstr("shmem: 3 nodes, by ucx")));
}

TEST_F(OnHosts, OshrunsPesMayStartTheLibraryAgain) {
  const Hosts hosts(2);
  const std::vector<std::string> command{
      program("oshrun"),         "--rsh", hosts.agent(), "-H", "h0:2,h1:2", "--gba", "off",
      test_program("shmem_pes"), "net",   "again"};
  const auto job = hosts.run(0, command, {"SHMEM_SYMMETRIC_SIZE=64M"}, kLimit);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  for (int pe = 0; pe < 4; ++pe) {
    EXPECT_THAT(job.output, HasSubstr("PE " + std::to_string(pe) + " was there in start 2"));
  }
}

TEST(Nodes, DoNotStartByTcpIfRdmaIsRequired) {
  const auto job =
      run_pes(2, "off", on_nodes("/ 1", {"shmem_pes", "net", "hello"}), {"SHMEM_NETWORK_REQUIRE=rdma"}, kLimit);
  EXPECT_NE(job.exit.code, 0);
  EXPECT_THAT(job.output, AllOf(HasSubstr("shmem: PE 0 (on "), HasSubstr("has no network to the other nodes: "),
                                HasSubstr("SHMEM_NETWORK_REQUIRE=rdma, but UCX "), HasSubstr("would use tcp")));
  // PEs of one node need no network.
  run_clean(2, "off", {"shmem_pes", "net", "hello"}, {"SHMEM_NETWORK_REQUIRE=rdma"}, kLimit);
}

/// Programs for Ascend SHMEM, which give each of the library's PEs a device.
TEST(AscendOnNodes, CallsDoWhatThatLibrarySays) {
  std::vector<const char*> programs{"rma_c", "sync_c", "device", "engines"};
  if (repeats(1, 2) == 2) {
    programs.insert(programs.end(), {"rma_cxx", "sync_cxx", "kernel"});
  }
  for (const std::string program : programs) {
    const std::string part = program.substr(0, program.find('_'));
    const Words command{program.ends_with("_c") ? "ascend_c_pes" : "ascend_cxx_pes", part};
    run_clean(4, "off", on_nodes("/ 2", command), {"SHMEM_CYCLE_PROF_PE=3"}, kLimit);
  }
}

TEST(AscendOnNodes, ProgramsRunAsTheyAreWrittenForThatLibrary) {
  // BLOCK_DIMS, HEADS, PAGE and DIM: on a node, KVShuffleOps of one core and of many take different paths.
  for (const auto& command : {std::vector<std::string>{"allgather"},
                              {"kv_shuffle", "1", "2", "8", "64"},
                              {"kv_shuffle", "16", "3", "5", "7"}}) {
    const TempDir dir;
    Words line{"ascend_cxx_pes", command[0], dir.file("uid")};
    line.insert(line.end(), command.begin() + 1, command.end());
    run_clean(4, "off", on_nodes("/ 2", line), {"SHMEM_UID_SESSION_ID=127.0.0.1:0"}, kLimit);
  }
}

constexpr std::array kFamilies = {"setup", "team", "rma", "atomic", "wait", "collective", "threads"};

// Only a soak has the time for all of them.
bool soak() {
  return repeats(1, 2) == 2;
}

std::vector<const char*> languages() {
  if (!soak()) {
    return {"c"};
  }
  return {"c", "cxx"};
}

std::vector<Places> all_places() {
  if (!soak()) {
    return {{2, 2}};
  }
  return {{2, 1}, {3, 1}, {2, 2}};
}

INSTANTIATE_TEST_SUITE_P(All, OpenShmemOnNodes,
                         Combine(ValuesIn(kFamilies), ValuesIn(languages()), ValuesIn(all_places())),
                         [](const testing::TestParamInfo<Parameters>& test) {
                           const auto& places = std::get<2>(test.param);
                           return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" +
                                  std::to_string(places.nodes) + "x" + std::to_string(places.each);
                         });

class NodesOfAJob : public OnHosts {
 protected:
  void expect_clean(const JobOnHosts& job) { EXPECT_THAT(job.codes(kLimit), Each(0)) << job.output(); }
};

TEST_F(NodesOfAJob, AreHostsThatShareOnlyTheNetwork) {
  const Hosts hosts(3);
  for (const auto& host_of : {std::vector<int>{0, 1, 2}, {0, 0, 1, 1}}) {
    const auto before = hosts.traffic(1);
    const JobOnHosts job(hosts, host_of, {test_program("shmem_pes"), "net", "hello"}, {"SHMEM_INFO=1"});
    expect_clean(job);
    EXPECT_THAT(job.pe(0).output(), AllOf(HasSubstr(host_of.size() == 3 ? "3 nodes" : "2 nodes"), HasSubstr("ucx ")));
    // Heap and global words for the next PE.
    EXPECT_GT(hosts.traffic(1).received, before.received);
  }
}

TEST_F(NodesOfAJob, StartAndEndTheLibraryRepeatedly) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "again"});
  expect_clean(job);
  EXPECT_THAT(job.pe(1).output(), HasSubstr("PE 1 was there in start 2"));
}

TEST_F(NodesOfAJob, MayBeStartedByMpirun) {
#ifndef SHMEM_HAS_PMIX
  GTEST_SKIP() << "libshmem is built without PMIx";
#endif
  const Hosts hosts(2);
  const TempDir dir;
  const auto job = hosts.run(0,
                             {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--host",
                              hosts.slots(2), test_program("shmem_pes"), "net", "hello"},
                             {"TMPDIR=" + dir.path(), "SHMEM_GBA=off", "SHMEM_INFO=1"}, kLimit);
  if (job.exit.code == 127) {
    GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  }
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("2 nodes"));
}

TEST_F(NodesOfAJob, FindEachOtherByIpv6) {
  if (!Hosts::has_ipv6()) {
    GTEST_SKIP() << "this kernel has no IPv6";
  }
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "hello"},
                       {"SHMEM_UID_SESSION_ID=[" + Hosts::ipv6(0) + "]:7000"});
  expect_clean(job);
}

TEST_F(NodesOfAJob, FindEachOtherByTheAddressOfAnInterface) {
  const Hosts hosts(2);
  std::vector<std::string> interfaces{"SHMEM_INFO=0", "SHMEM_UID_SOCK_IFNAME=eth0"};  // first any interface, then eth0
  if (Hosts::has_ipv6()) {
    interfaces.emplace_back("SHMEM_UID_SOCK_IFNAME=eth0:inet6");
  }
  for (const std::string& interface : interfaces) {
    const TempDir dir;
    std::vector<std::unique_ptr<Process>> pes;
    pes.reserve(2);
    for (int pe = 0; pe < 2; ++pe) {
      pes.push_back(std::make_unique<Process>(
          hosts.on(pe, {test_program("shmem_pes"), "uid", dir.file("id"), std::to_string(pe), "2", "hello"}),
          std::vector{interface}));
    }
    for (const auto& pe : pes) {
      const auto exit = pe->wait(JobOnHosts::kTimeLimit);
      EXPECT_TRUE(exit && exit->clean()) << interface << '\n' << pe->output();
    }
    EXPECT_THAT(pes[1]->output(), HasSubstr("PE 1 of 2: hello from 0")) << interface;
  }
}

TEST_F(NodesOfAJob, PassTheOpenShmemPrograms) {
  const Hosts hosts(3);
  for (const auto& host_of : {std::vector<int>{0, 1}, {0, 1, 2}, {0, 0, 1, 1}}) {
    for (const std::string family : kFamilies) {
      for (const std::string language : languages()) {
        const JobOnHosts job(hosts, host_of, {test_program("openshmem_" + language + "_pes"), family},
                             {"SHMEM_SYMMETRIC_SIZE=1G"});
        EXPECT_THAT(job.codes(kLimit), Each(0)) << family << '\n' << job.output();
      }
    }
  }
}

TEST_F(NodesOfAJob, ShuffleBlocksOfCaches) {
  const Hosts hosts(3);
  std::vector<const char*> formats{"by-layer"};
  if (soak()) {
    formats = {"apart", "by-layer", "interleaved", "by-block", "latent"};
  }
  for (const auto& host_of : {std::vector<int>{0, 1}, {0, 1, 2}, {0, 0, 1, 1}}) {
    for (const char* format : formats) {
      // A move clears its source blocks, which must wait for blocks that arrive there.
      const JobOnHosts job(hosts, host_of,
                           {program("kv_shuffle"), "--check", "--plan", "balanced", "--mode", "move", "--format",
                            format, "--layers", "3", "--page", "4", "--rounds", "2"});
      expect_clean(job);
      EXPECT_THAT(job.pe(0).output(), HasSubstr("kv_shuffle: PASS")) << format;
    }
  }
}

TEST_F(NodesOfAJob, AnswerWhileTheyComputeUnlessTheyHaveNoProgressThread) {
  const Hosts hosts(2);
  for (const bool thread : {false, true}) {
    const TempDir dir;
    JobOnHosts::Environment environment;
    if (!thread) {
      environment.emplace_back("SHMEM_PROGRESS_THREAD=0");
    }
    const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "compute", dir.file("computes")},
                         environment);
    expect_clean(job);
    EXPECT_THAT(job.pe(0).output(), HasSubstr(thread ? "was answered meanwhile" : "was answered after it"));
  }
}

TEST_F(NodesOfAJob, AnswerWhileTheyPollOnTheirNode) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 0, 1}, {test_program("shmem_pes"), "net", "poll"}, {"SHMEM_PROGRESS_THREAD=0"});
  expect_clean(job);
  EXPECT_TRUE(job.all_say("is through"));
}

TEST_F(NodesOfAJob, ForgetActiveSetsWithTheirMemory) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", "psyncs"});
  expect_clean(job);
  EXPECT_TRUE(job.all_say("is through"));
}

TEST_F(NodesOfAJob, AreCheckedByTheirNumbersInTheJob) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "net", "shift"}, {"SHMEM_DEBUG=1"});
  expect_clean(job);
  EXPECT_TRUE(job.all_say("is through"));

  const JobOnHosts wrong(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "net", "mistake"}, {"SHMEM_DEBUG=1"});
  EXPECT_THAT(wrong.codes(), Each(Ne(0)));
  EXPECT_THAT(wrong.output(), HasSubstr("PE 2 calls shmem_barrier_all(), PE 3 calls shmem_sync_all()"));
}

TEST_F(NodesOfAJob, StartSynchroniseAndFinishWithManyPes) {
  const Hosts hosts(4);
  const int each = repeats(4, 16);
  std::vector<int> host_of;
  for (int host = 0; host < hosts.number(); ++host) {
    host_of.insert(host_of.end(), static_cast<std::size_t>(each), host);
  }
  const JobOnHosts job(hosts, host_of, {test_program("shmem_pes"), "net", "nothing"}, {"SHMEM_BOOTSTRAP_TIMEOUT=120"});
  expect_clean(job);
  EXPECT_TRUE(job.all_say("ready"));
}

}  // namespace
