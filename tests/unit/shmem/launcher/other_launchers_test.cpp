// SPDX-License-Identifier: Apache-2.0
// oshrun takes, maps or explains the options of Open MPI's launcher.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include "base/fd.hpp"
#include "shmem/launcher/options.hpp"
#include "tests/support/process.hpp"

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
              AllOf(HasSubstr("4 PEs with 2 per node are more than one node"), HasSubstr("-H or --hostfile")));
  EXPECT_THAT(refusal_of({"-n", "4", "--map-by", "ppr:2:node", "prog"}), HasSubstr("more than one node"));
  EXPECT_THAT(refusal_of({"-N", "0", "prog"}), HasSubstr("0 is not a number of PEs"));
}

std::string nodes_of(const std::vector<const char*>& arguments) {
  const auto options = options_of(arguments);
  EXPECT_TRUE(options) << options.error().text;
  std::string text;
  for (const auto& node : options ? options->nodes : std::vector<shmem::launcher::NodePes>()) {
    text += fmt::format("{}:{}+{} ", node.host, node.first, node.pes);
  }
  return text;
}

TEST(OtherLaunchers, HostsThatAreThisMachineNeedNoOtherLauncher) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  EXPECT_EQ(pes_of({"-H", "localhost", "prog"}), 1);
  EXPECT_EQ(pes_of({"-host", "localhost:2,127.0.0.1", "prog"}), 3);
  EXPECT_EQ(pes_of({"--host", host.data(), "-n", "5", "prog"}), 5);
  EXPECT_EQ(nodes_of({"--host", host.data(), "-n", "5", "prog"}), "");
  EXPECT_THAT(refusal_of({"-H", "localhost:x", "prog"}), HasSubstr("localhost:x does not end with a number"));
  EXPECT_THAT(refusal_of({"-H", "localhost:4000,localhost:4000", "prog"}), HasSubstr("more than 4096 PEs"));
}

TEST(OtherLaunchers, HostsTakePesInTheirOrder) {
  EXPECT_EQ(nodes_of({"-H", "a:2,b:3", "prog"}), "a:0+2 b:2+3 ");
  EXPECT_EQ(nodes_of({"-H", "a,b", "-np", "1", "prog"}), "a:0+1 ");
  EXPECT_EQ(nodes_of({"-H", "a,b,a", "prog"}), "a:0+2 b:2+1 ");
  EXPECT_EQ(nodes_of({"-H", "a,b", "-N", "3", "prog"}), "a:0+3 b:3+3 ");
  EXPECT_EQ(nodes_of({"-H", "a,b", "--map-by", "ppr:2:node", "prog"}), "a:0+2 b:2+2 ");
  EXPECT_EQ(nodes_of({"-H", "a:2,b", "-n", "1", "prog", ":", "-n", "2", "other"}), "a:0+2 b:2+1 ");
  EXPECT_EQ(nodes_of({"-H", "a,b", "-n", "5", "--oversubscribe", "prog"}), "a:0+3 b:3+2 ");
  EXPECT_EQ(nodes_of({"-H", "fe80::1,b", "prog"}), "fe80::1:0+1 b:1+1 ");
  EXPECT_THAT(refusal_of({"-H", "a:2,b", "-n", "4", "prog"}),
              AllOf(HasSubstr("4 PEs do not fit on 2 nodes with 3 in all"), HasSubstr("--oversubscribe")));
  EXPECT_THAT(refusal_of({"-H", "-oProxyCommand=x", "prog"}), HasSubstr("is not the name of a host"));
  EXPECT_THAT(refusal_of({"-H", ",", "prog"}), HasSubstr("\"\" is not the name of a host"));
  EXPECT_THAT(refusal_of({"-H", "a", "--gba", "fake", "prog"}), HasSubstr("--gba fake is for jobs on one node"));
  EXPECT_THAT(refusal_of({"-H", "a,b", "--restart", "1", "prog"}), HasSubstr("--restart is for jobs on one node"));
  EXPECT_THAT(refusal_of({"-H", "a", "--map-by", "node", "prog"}), HasSubstr("--map-by node is not available"));
  EXPECT_THAT(refusal_of({"-H", "a", "--direct-output", "prog"}), HasSubstr("--direct-output is for jobs on one node"));
}

TEST(OtherLaunchers, AHostFileHasALineForEachHost) {
  const test_support::TempDir dir;
  const std::string file = dir.file("hosts");
  std::ofstream(file) << "# the rack\na slots=2\n\n  b:3 # broken\nc\n";
  for (const char* option : {"--hostfile", "-hostfile", "-machinefile"}) {
    EXPECT_EQ(nodes_of({option, file.c_str(), "prog"}), "a:0+2 b:2+3 c:5+1 ") << option;
  }
  std::ofstream(file) << "a slots = 2\nb max_slots=4\nc slots=5 max_slots = 3\n[::1]\n[fe80::1]:2\n";
  EXPECT_EQ(nodes_of({"--hostfile", file.c_str(), "prog"}), "a:0+2 b:2+1 c:3+3 ::1:6+1 fe80::1:7+2 ");
  std::ofstream(file) << "a\nb most=3\n";
  EXPECT_THAT(refusal_of({"--hostfile", file.c_str(), "prog"}), HasSubstr(file + ":2: \"most=3\" is not slots=N"));
  std::ofstream(file) << "# nobody\n";
  EXPECT_THAT(refusal_of({"--hostfile", file.c_str(), "prog"}), HasSubstr(file + " names no host"));
  EXPECT_THAT(refusal_of({"--hostfile", dir.path().c_str(), "prog"}), HasSubstr("it is a folder"));
  EXPECT_THAT(refusal_of({"--hostfile", "/dev/null", "prog"}), HasSubstr("not a regular file"));
  std::ofstream(file) << "a\n";
  EXPECT_THAT(refusal_of({"--hostfile", file.c_str(), "-H", "a", "prog"}), HasSubstr("excludes"));
}

TEST(OtherLaunchers, AHostFileMayBeAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  std::thread writer([&write] {
    ::usleep(20000);
    EXPECT_EQ(::write(write.get(), "a:2\nb\n", 6), 6);
    write.reset();
  });
  const std::string name = "/dev/fd/" + std::to_string(read.get());
  EXPECT_EQ(nodes_of({"--hostfile", name.c_str(), "prog"}), "a:0+2 b:2+1 ");
  writer.join();
  const test_support::TempDir dir;
  const std::string fifo = dir.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(refusal_of({"--hostfile", fifo.c_str(), "prog"}), HasSubstr(fifo + " names no host"));
}

TEST(OtherLaunchers, RshIsAProgramWithOptions) {
  EXPECT_THAT(options_of({"-H", "a", "prog"})->rsh, ElementsAre("ssh", "-x", "-o", "BatchMode=yes"));
  EXPECT_THAT(options_of({"--rsh", "ssh  -p 22", "-H", "a", "prog"})->rsh, ElementsAre("ssh", "-p", "22"));
  ::setenv("SHMEM_RSH", "mine -v", 1);
  EXPECT_THAT(options_of({"-H", "a", "prog"})->rsh, ElementsAre("mine", "-v"));
  EXPECT_THAT(options_of({"--rsh", "ssh", "-H", "a", "prog"})->rsh, ElementsAre("ssh"));
  ::unsetenv("SHMEM_RSH");
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
