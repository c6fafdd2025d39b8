// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM programs of Open MPI whose barriers the device does, through the component scoll/gba.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::Fails;
using openmpi_test::Mpirun;
using openmpi_test::Options;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::Outcome;
using test_support::repeats;
using test_support::sum_of;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Shmem : public Mpirun {
 protected:
  /// Runs PEs of shmem_ranks; `device` is GBA_DEVICE for both components.
  [[nodiscard]] Outcome run(int pes, const std::string& device, const std::vector<std::string>& command,
                            const Options& options = {}) const {
    return run_program("openmpi_shmem_ranks", pes, command, with_device(device, options));
  }

  static Options with_device(const std::string& device, const Options& options) {
    // Debian's UCX crashes at the end of OpenSHMEM programs with its memory hooks.
    Options all{"-x",    "GBA_DEVICE=" + device, "--mca", "opal_common_ucx_opal_mem_hooks", "0",
                "--mca", "scoll_gba_verbose",    "5"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
};

const Options kWithoutColl{"--mca", "coll_gba_disable", "1"};

std::string all_pes(int pes) {
  return "scoll:gba: the " + std::to_string(pes) + " PEs from PE 0 on: ";
}

/// The component reports that it was selected, and the device has counted the barriers.
TEST_F(Shmem, BarriersAreDoneByTheDevice) {
  for (const int pes : {2, 4}) {
    const FakeDevice device;
    const int barriers = repeats(50, 1000);
    const auto job = run(pes, device.path(), {"world", std::to_string(barriers)}, kWithoutColl);
    EXPECT_THAT(job,
                Passes(AllOf(HasSubstr(all_pes(pes) + "the device does the barriers"), HasSubstr("by others 0\n"))));
    EXPECT_GE(sum_of(job.output, "by the device"), 2 * barriers);
    EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
  }
}

TEST_F(Shmem, BarriersOfActiveSetsAreDoneByTheDevice) {
  for (const int pes : {2, 5}) {
    const FakeDevice device;
    const int barriers = repeats(20, 500);
    const auto job = run(pes, device.path(), {"sets", std::to_string(barriers)}, kWithoutColl);
    EXPECT_THAT(job, Passes(HasSubstr("by others 0\n"))) << pes;
    EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
  }
}

TEST_F(Shmem, BarriersMayMixWithThoseOfMpi) {
  const FakeDevice device;
  const int barriers = repeats(20, 500);
  const auto job = run(4, device.path(), {"mixed", std::to_string(barriers)});
  EXPECT_THAT(job, Passes(AllOf(HasSubstr("by others 0\n"), HasSubstr("fallen back 0,"))));
  EXPECT_GE(sum_of(job.output, "by the device"), 2 * barriers);
  EXPECT_GE(sum_of(job.output, "offloaded"), 2 * barriers);
  EXPECT_GE(releases_of(device), 4 * static_cast<unsigned long long>(barriers));
}

/// The device has only a port per process: MPI and OpenSHMEM share the process's connection.
TEST_F(Shmem, SharesTheConnectionOfMpi) {
  const FakeDevice device({"--ports", "2"});
  const auto job = run(2, device.path(), {"mixed", "5"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr(all_pes(2) + "the device does the barriers"),
                                HasSubstr("MPI_COMM_WORLD: the device does the barriers"), HasSubstr("by others 0\n"),
                                HasSubstr("fallen back 0,")));
}

/// One PE rings for those that get no port: the device, which sees one or two members, counts the barriers of four PEs.
TEST_F(Shmem, PesThatShareAPortCombineFirst) {
  for (const int ports : {1, 2}) {
    const FakeDevice device({"--ports", std::to_string(ports)});
    const auto job = run(4, device.path(), {"world", std::to_string(repeats(20, 500))}, kWithoutColl);
    EXPECT_THAT(job, Passes(AllOf(HasSubstr(all_pes(4) + "the device does the barriers"), HasSubstr("by others 0\n"))));
    EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
  }
}

TEST_F(Shmem, PesThatShareAPortFinishBarriersWithoutAKilledDevice) {
  for (int time = 0; time < repeats(1, 50); ++time) {
    FakeDevice device({"--ports", std::to_string(1 + time % 3)});
    const auto job =
        run(4, device.path(), {"killed", "40", std::to_string(10 + time % 25), std::to_string(device.process().pid())});
    EXPECT_THAT(job, Passes(HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "by the device"), 5);
  }
}

/// Both the group of all PEs and an active set, at random moments.
TEST_F(Shmem, BarriersAreDoneWithoutAKilledDevice) {
  for (int time = 0; time < repeats(2, 50); ++time) {
    FakeDevice device;
    const auto job = run(time % 2 == 0 ? 2 : 4, device.path(),
                         {"killed", "40", std::to_string(10 + time % 25), std::to_string(device.process().pid())});
    EXPECT_THAT(job, Passes(AllOf(HasSubstr("scoll:gba: "), HasSubstr("no device any more"))));
    EXPECT_GE(sum_of(job.output, "by the device"), 5);
    EXPECT_GE(sum_of(job.output, "by others"), 1);
  }
}

TEST_F(Shmem, BarriersAreDoneWithoutADevice) {
  for (const auto& [path, name] : {std::pair{"", "world"}, std::pair{"/nonexistent", "sets"}}) {
    const auto job = run(2, path, {name, "10"});
    EXPECT_THAT(job, Passes(AllOf(HasSubstr("by the device 0,"),
                                  HasSubstr(all_pes(2) + "the previous module does the barriers"))));
  }
}

/// All PEs decide together: a PE that does not use the device tells the others.
TEST_F(Shmem, BarriersAreDoneIfSomePesDoNotUseTheDevice) {
  const FakeDevice device;
  const auto job =
      run(2, device.path(), {"world", "10"}, openmpi_test::last_rank_by({"env", "OMPI_MCA_scoll_gba_disable=1"}));
  EXPECT_THAT(job, Passes(AllOf(HasSubstr("scoll_gba_disable is set"), HasSubstr("by the device 0,"))));
}

TEST_F(Shmem, SmallGroupsAreLeftToOtherModules) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"sets", "5"}, {"--mca", "scoll_gba_min_group_size", "4"});
  EXPECT_THAT(job,
              Passes(AllOf(HasSubstr(all_pes(4) + "the device does the barriers"),
                           HasSubstr("fewer members than scoll_gba_min_group_size"), Not(HasSubstr("by others 0\n")))));
}

/// That of scoll/mpi is 77.
TEST_F(Shmem, TheComponentOfTheHighestPriorityDoesTheBarriers) {
  const FakeDevice device;
  const auto run_with = [&](const std::string& priority) {
    return run(2, device.path(), {"world", "10"},
               {"--mca", "scoll_gba_priority", priority, "--mca", "coll_gba_disable", "1"});
  };
  for (const std::string lower : {"10", "76"}) {
    const auto job = run_with(lower);
    EXPECT_THAT(job, Passes(HasSubstr("by the device 0,"))) << lower;
  }
  const auto job = run_with("78");
  EXPECT_THAT(job, Passes(HasSubstr("by others 0\n")));
  EXPECT_GE(sum_of(job.output, "by the device"), 20);
}

/// The groups agree on the device at the same time, in a different order on each PE.
TEST_F(Shmem, ActiveSetsMayBelongToManyThreads) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"threads", std::to_string(repeats(10, 500))}, kWithoutColl);
  EXPECT_THAT(job,
              Passes(AllOf(HasSubstr("by others 0\n"), HasSubstr("scoll:gba: the 3 PEs from PE 0 on: the device does"),
                           HasSubstr("scoll:gba: the 2 PEs from PE 0 on: the device does"),
                           HasSubstr("scoll:gba: the 3 PEs from PE 1 on: the device does"))));
  EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
}

/// OpenSHMEM's barriers return no errors, so the job ends. On a slow machine other PEs may be late too.
TEST_F(Shmem, MissingPesAreNamedAndTheJobEnds) {
  const FakeDevice device;
  const auto both = [&](int seconds) {
    const auto options = with_device(
        device.path(), {"--mca", "coll_gba_disable", "1", "--mca", "scoll_gba_timeout", std::to_string(seconds)});
    const auto barrier = start_program("openmpi_shmem_ranks", 3, entered() + "1", {"late", "5"}, options);
    const auto agreement = start_program("openmpi_shmem_ranks", 4, entered() + "2", {"absent", "0"}, options);
    auto later = end(*barrier);
    return std::pair{std::move(later), end(*agreement)};
  };
  const std::string taken = " on has taken [0-9]+ s \\(scoll_gba_timeout\\)";
  const testing::Matcher<const std::pair<Outcome, Outcome>&> expected =
      testing::Pair(Fails(AllOf(ContainsRegex("a barrier of the 3 PEs from PE 0" + taken),
                                ContainsRegex("PEs that have not come:( 0)? 1( 2)?\n"))),
                    Fails(AllOf(ContainsRegex("a barrier of the 3 PEs from PE 1" + taken),
                                ContainsRegex("PEs that have not come: 2( 3)?\n"))));
  EXPECT_THAT(test_support::with_timeouts(both, [&](const auto& jobs) { return expected.Matches(jobs); }), expected);
}

/// Two nodes, which are host names on this machine, with two PEs each.
class ShmemNodes : public Shmem {
 protected:
  void SetUp() override {
    Shmem::SetUp();
    if (!test_support::run({"unshare", "--uts", "true"}).exit.clean()) {
      GTEST_SKIP() << "other host names need root (unshare --uts)";
    }
  }

  static Options options() {
    Options all = openmpi_test::two_nodes(OPENMPI_NODE_AGENT);
    all.insert(all.end(), kWithoutColl.begin(), kWithoutColl.end());
    return all;
  }

  const Options options_ = options();
};

TEST_F(ShmemNodes, ShareTheDevice) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"sets", std::to_string(repeats(10, 200))}, options_);
  EXPECT_THAT(job, Passes(AllOf(HasSubstr("by others 0\n"), HasSubstr("of 4 members on 2 nodes"),
                                HasSubstr("of 3 members on 2 nodes"), HasSubstr("of 2 members on 1 node\n"))));
  EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
}

TEST_F(ShmemNodes, FinishBarriersWithoutAKilledDevice) {
  for (int time = 0; time < repeats(1, 50); ++time) {
    FakeDevice device;
    const auto job =
        run(4, device.path(), {"killed", "40", std::to_string(10 + time % 25), std::to_string(device.process().pid())},
            options_);
    EXPECT_THAT(job, Passes(HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "by others"), 1);
  }
}

/// The release of the last PE from the only barrier, that of shmem_finalize, is lost for good. The others have
/// continued when it finds out, and still answer.
TEST_F(ShmemNodes, AnswerAtTheEnd) {
  const FakeDevice device({"--fault", "drop-release:group=0,member=3,count=1000000"});
  const auto job = run(4, device.path(), {"world", "0"}, options_);
  EXPECT_THAT(job, Passes(HasSubstr("as group 0 of 4 members on 2 nodes")));
}

}  // namespace
