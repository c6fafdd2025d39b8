// SPDX-License-Identifier: Apache-2.0
// oshrun takes, maps or explains the options of Open MPI's launcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "shmem/launcher/options.hpp"

namespace {

using shmem::launcher::Bind;
using shmem::launcher::kUsageStatus;
using shmem::launcher::Options;
using shmem::launcher::Refusal;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

base::Result<Options, Refusal> options_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "oshrun");
  return shmem::launcher::parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal_of(const std::vector<const char*>& arguments) {
  const auto options = options_of(arguments);
  if (options) {
    return "accepted";
  }
  EXPECT_EQ(options.error().status, kUsageStatus);
  return options.error().text;
}

int pes_of(const std::vector<const char*>& arguments) {
  const auto options = options_of(arguments);
  EXPECT_TRUE(options) << options.error().text;
  return options ? options->pes() : -1;
}

TEST(OtherLaunchers, OptionsThatMeanNothingHereAreAccepted) {
  for (const char* option : {"--oversubscribe", "-oversubscribe", "--allow-run-as-root", "-allow-run-as-root"}) {
    const auto options = options_of({option, "-np", "3", "prog", "--oversubscribe"});
    ASSERT_TRUE(options) << option << options.error().text;
    EXPECT_EQ(options->pes(), 3);
    EXPECT_THAT(options->programs[0].command, ElementsAre("prog", "--oversubscribe"));
  }
  for (const char* what : {"slot", "core", "numa", "socket", "node:OVERSUBSCRIBE"}) {
    EXPECT_TRUE(options_of({"--map-by", what, "-n", "2", "prog"})) << what;
  }
  EXPECT_THAT(refusal_of({"--map-by", "socket:PE=2", "prog"}),
              AllOf(HasSubstr("--map-by: socket:PE=2 is not available"), HasSubstr("--bind")));
  EXPECT_THAT(refusal_of({"--map-by", "moon", "prog"}), HasSubstr("moon is not available"));
}

TEST(OtherLaunchers, BindToIsBind) {
  EXPECT_EQ(options_of({"--bind-to", "core", "prog"})->bind, Bind::kCore);
  EXPECT_EQ(options_of({"-bind-to", "numa", "prog"})->bind, Bind::kNuma);
  EXPECT_EQ(options_of({"--bind-to", "core:overload-allowed", "prog"})->bind, Bind::kCore);
  EXPECT_EQ(options_of({"--bind-to", "none", "prog"})->bind, Bind::kNone);
  EXPECT_THAT(refusal_of({"--bind-to", "socket", "prog"}), HasSubstr("socket is not available: none, core or numa"));
  EXPECT_THAT(refusal_of({"--bind", "core", "--bind-to", "core", "prog"}), HasSubstr("excludes"));
}

TEST(OtherLaunchers, PesPerNodeAreThePesOfTheOnlyNode) {
  EXPECT_EQ(pes_of({"-N", "3", "prog"}), 3);
  EXPECT_EQ(pes_of({"-npernode", "3", "prog"}), 3);
  EXPECT_EQ(pes_of({"--map-by", "ppr:4:node", "prog"}), 4);
  EXPECT_EQ(pes_of({"-N", "4", "-n", "2", "prog"}), 2);
  EXPECT_THAT(refusal_of({"-n", "4", "-N", "2", "prog"}),
              AllOf(HasSubstr("4 PEs with 2 per node are more than one node"), HasSubstr("use mpirun or srun")));
  EXPECT_THAT(refusal_of({"-n", "4", "--map-by", "ppr:2:node", "prog"}), HasSubstr("more than one node"));
  EXPECT_THAT(refusal_of({"-N", "0", "prog"}), HasSubstr("0 is not a number of PEs"));
}

TEST(OtherLaunchers, HostsAreThisMachineOnly) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  EXPECT_EQ(pes_of({"-H", "localhost", "prog"}), 1);
  EXPECT_EQ(pes_of({"-host", "localhost:2,127.0.0.1", "prog"}), 3);
  EXPECT_EQ(pes_of({"--host", host.data(), "-n", "5", "prog"}), 5);
  EXPECT_THAT(refusal_of({"-H", "localhost,other.example", "prog"}),
              AllOf(HasSubstr("\"other.example\" is not this machine"), HasSubstr("use mpirun or srun")));
  EXPECT_THAT(refusal_of({"-H", "localhost:x", "prog"}), HasSubstr("localhost:x does not end with a number"));
  EXPECT_THAT(refusal_of({"-H", "localhost:4000,localhost:4000", "prog"}), HasSubstr("more than 4096 PEs"));
  for (const char* option : {"--hostfile", "-hostfile", "-machinefile"}) {
    EXPECT_THAT(refusal_of({option, "hosts", "prog"}), HasSubstr("for several nodes use mpirun or srun")) << option;
  }
}

TEST(OtherLaunchers, McaParametersAreVariablesOfThePes) {
  const auto options =
      options_of({"-mca", "btl", "tcp,self", "-x", "A=1", "--mca", "coll", "^gba", "prog", "--mca", ":", "other"});
  ASSERT_TRUE(options) << options.error().text;
  ASSERT_EQ(options->programs.size(), 2U);
  EXPECT_THAT(options->programs[0].exports,
              ElementsAre(Pair("OMPI_MCA_btl", "tcp,self"), Pair("OMPI_MCA_coll", "^gba"), Pair("A", "1")));
  EXPECT_THAT(options->programs[0].command, ElementsAre("prog", "--mca"));
  EXPECT_THAT(options->programs[1].exports,
              ElementsAre(Pair("OMPI_MCA_btl", "tcp,self"), Pair("OMPI_MCA_coll", "^gba")));
  EXPECT_EQ(refusal_of({"--mca", "btl"}).substr(0, 8), "oshrun: ");
}

TEST(OtherLaunchers, VersionIsPrinted) {
  for (const char* option : {"--version", "-V"}) {
    const auto options = options_of({option});
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().status, 0);
    EXPECT_EQ(options.error().text, "oshrun: libshmem " SHMEM_VERSION ", OpenSHMEM 1.6\n");
  }
}

}  // namespace
