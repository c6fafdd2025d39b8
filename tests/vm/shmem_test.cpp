// SPDX-License-Identifier: Apache-2.0
// Jobs of libshmem and of Open MPI on a real kernel's VFIO, where udev's rules have made /dev/gba0 and /dev/gba1.
// Nothing names a socket. guest/shmem_init runs the jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/job.hpp"
#include "tests/vm/kernels.hpp"
#include "tests/vm/machine.hpp"
#include "tests/vm/scripted_guest.hpp"

namespace {

using test_support::program;
using test_support::sum_of;
using test_support::test_program;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using vm::Said;

/// Where the components of Open MPI are; "" if they are not built.
const std::string kComponents = OPENMPI_COMPONENTS;

vm::Transcript boot(const std::string& kernel) {
  std::vector<std::string> arguments{vm::cache_folder(), kernel, GBA_UDEV_DIR, kComponents, program("oshrun")};
  arguments.insert(arguments.end(), {program("kv_shuffle"), test_program("barrier_pes"), test_program("vm_shmem_pes")});
  if (!kComponents.empty()) {
    arguments.insert(arguments.end(), {test_program("openmpi_barrier_ranks"), test_program("openmpi_shmem_ranks")});
  }
  return vm::boot(kernel, "make-shmem-initramfs.sh", arguments, test_support::Seconds{800});
}

class OnVfio : public testing::TestWithParam<std::string> {
 protected:
  static constexpr unsigned long long kBarriers = 50;  // of barrier_pes in guest/shmem_init

  /// One boot of each kernel serves all tests.
  static vm::Transcript& run() {
    static std::map<std::string, vm::Transcript> runs;
    const auto found = runs.find(GetParam());
    return found != runs.end() ? found->second : runs.emplace(GetParam(), boot(GetParam())).first->second;
  }
  /// What a command printed that must have ended with `code`.
  static std::string said(const std::string& name, int code = 0) {
    const Said& found = run().commands[name];
    EXPECT_EQ(found.code, code) << name << ":\n" << (found.code == -1 ? run().console : found.text);
    return found.text;
  }
  /// Expects a run of barrier_pes in which the device has released the barriers of each of `pes` PEs.
  static void expect_barriers_by_device(const std::string& name, int pes) {
    const std::string text = said(name);
    for (int pe = 0; pe < pes; ++pe) {
      EXPECT_THAT(text, HasSubstr("PE " + std::to_string(pe) + ": gba, early 0, by device "));
    }
    EXPECT_GE(sum_of(text, "by device"), static_cast<unsigned long long>(pes) * kBarriers) << text;
  }
  /// Expects a job that lost the function without losing a barrier, and then used it again.
  static void expect_loss_and_return(const std::string& name, int pes) {
    const std::string text = said(name);
    EXPECT_THAT(text, AllOf(HasSubstr("team 0 (" + std::to_string(pes) + " PEs: 0, stride 1): barrier gba\n"),
                            ContainsRegex("team 0: software barriers after [1-9][0-9]* through the device: gba: "),
                            HasSubstr("team 0: barriers go through the device again\n")));
    for (int pe = 0; pe < pes; ++pe) {
      EXPECT_THAT(text, HasSubstr("PE " + std::to_string(pe) + ": gba, early 0, by device "));
    }
    EXPECT_GT(sum_of(text, "by software"), 0U) << text;
  }
};

TEST_P(OnVfio, UdevNamesTheFunctions) {
  EXPECT_EQ(said("names"), "/dev/gba0\n/dev/gba1\n");
  EXPECT_EQ(said("name"), "/dev/gba0\n");
}

TEST_P(OnVfio, EachPeHasAFunction) {
  expect_barriers_by_device("two", 2);
}

TEST_P(OnVfio, ReleasesMayGoToTheDevicesMemory) {
  expect_barriers_by_device("two_in_bar", 2);
}

TEST_P(OnVfio, PesShareTwoFunctions) {
  expect_barriers_by_device("two_shared", 4);
}

TEST_P(OnVfio, PesShareOneFunction) {
  expect_barriers_by_device("one", 3);
}

// PEs 0 and 2 are behind the first function, PEs 1 and 3 behind the second one.
TEST_P(OnVfio, TeamsUseTheDeviceWithTheirOwnGroups) {
  const std::string text = said("teams");
  for (const int pe : {0, 1, 2, 3}) {
    const std::string start = "PE " + std::to_string(pe) + ": team ";
    const std::string by_device = ": gba, early 0, by device [1-9][0-9]";
    EXPECT_THAT(text, ContainsRegex(start + "all" + by_device));
    EXPECT_THAT(text, ContainsRegex(start + (pe % 2 == 0 ? "even" : "odd") + by_device));
  }
  // Team back, of PEs 2 and 3, has none of the PEs that have opened the functions.
  EXPECT_THAT(text, ContainsRegex("PE 2: team back: [a-z_]+, early 0, by device 0, by software 20, reason: PE 1, which "
                                  "has the port of PE 3 open, is not in the team\n"));
}

TEST_P(OnVfio, KvShuffleSynchronisesByTheDevice) {
  EXPECT_THAT(said("kv_shuffle"),
              AllOf(HasSubstr("(" + vm::backend() + "), port 0, "), ContainsRegex("barriers:  [1-9][0-9]* by the GBA"),
                    HasSubstr("every byte of 4 caches is correct\n"), HasSubstr("kv_shuffle: PASS\n")));
}

TEST_P(OnVfio, NoBarrierIsLostWhenOneOfTwoFunctionsIsUnplugged) {
  expect_loss_and_return("two_removed", 2);
  EXPECT_THAT(said("two_removed"), AllOf(Not(HasSubstr("without it: /dev/gba1")), HasSubstr("with it: /dev/gba1\n")));
}

TEST_P(OnVfio, NoBarrierIsLostWhenAFunctionIsReset) {
  expect_loss_and_return("two_reset", 2);
}

TEST_P(OnVfio, NoBarrierIsLostWhenTheOnlyFunctionIsUnplugged) {
  expect_loss_and_return("one_removed", 3);
  EXPECT_THAT(said("one_removed"), AllOf(HasSubstr("the kernel wants it back"), Not(HasSubstr("without it: ")),
                                         HasSubstr("with it: /dev/gba0\n")));
}

TEST_P(OnVfio, TheDefaultPathIsDevGba0) {
  EXPECT_THAT(said("elsewhere", 1),
              HasSubstr("SHMEM_GBA=require, but the world team cannot use a GBA: gba: cannot open "
                        "/dev/gba0: a character device, but not one of VFIO's"));
}

class OpenMpiOnVfio : public OnVfio {
 protected:
  void SetUp() override {
    if (kComponents.empty()) {
      GTEST_SKIP() << "the components of Open MPI are not built (Debian: libopenmpi-dev)";
    }
    if (run().commands["mpi"].code == -1 && run().commands["elsewhere"].code != -1) {
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin), or this kernel has no network for it";
    }
  }
};

TEST_P(OpenMpiOnVfio, RanksShareOneFunction) {
  EXPECT_THAT(said("mpi"), AllOf(HasSubstr("MPI_COMM_WORLD: the device does the barriers, as group 0 of 3 members"),
                                 HasSubstr("\n0 failures, offloaded 30, fallen back 0,")));
}

TEST_P(OpenMpiOnVfio, NoBarrierIsLostWhenOneOfTwoFunctionsIsUnplugged) {
  EXPECT_THAT(said("mpi_two_removed"),
              AllOf(HasSubstr("MPI_COMM_WORLD: the device does the barriers, as group 0 of 2 members"),
                    HasSubstr("rank 1: no device any more: "), HasSubstr("the kernel wants it back"),
                    HasSubstr("\n0 failures, offloaded 30, fallen back ")));
}

TEST_P(OpenMpiOnVfio, OpenShmemUsesTheDevice) {
  if (run().commands["oshmem"].code == -1 && run().commands["mpi_elsewhere"].code != -1) {
    GTEST_SKIP() << "UCX, which Open MPI's OpenSHMEM needs, finds no transport in a small kernel";
  }
  EXPECT_THAT(
      said("oshmem"),
      AllOf(HasSubstr("scoll:gba: the 2 PEs from PE 0 on: the device does the barriers, as group 0 of 2 members"),
            HasSubstr("OpenSHMEM: by the device 40, by others 0\n"), HasSubstr("\n0 failures, ")));
}

TEST_P(OpenMpiOnVfio, TheDefaultPathIsDevGba0) {
  EXPECT_THAT(said("mpi_elsewhere"),
              AllOf(HasSubstr("coll:gba: this process cannot use a device: gba: cannot open /dev/gba0: a character "
                              "device, but not one of VFIO's"),
                    HasSubstr("0 failures, offloaded 0,")));
}

INSTANTIATE_TEST_SUITE_P(All, OnVfio, testing::ValuesIn(vm::kernels()),
                         [](const auto& kernel) { return vm::test_name(kernel.param); });
INSTANTIATE_TEST_SUITE_P(All, OpenMpiOnVfio, testing::ValuesIn(vm::kernels()),
                         [](const auto& kernel) { return vm::test_name(kernel.param); });

}  // namespace
