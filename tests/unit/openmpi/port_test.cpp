// SPDX-License-Identifier: Apache-2.0
#include "openmpi/common/gba_port.h"

#include "openmpi/common/gba_decide.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/shmem/fake_gba.hpp"

namespace {

using Opened = std::vector<std::string>;

class OpenMpiPort : public testing::Test {
 protected:
  OpenMpiPort() {
    fake_gba::power_on(1);
    unsetenv("GBA_DEVICE");
  }
  ~OpenMpiPort() override { gba_ompi_port_close(&port_); }
  OpenMpiPort(const OpenMpiPort&) = delete;
  OpenMpiPort& operator=(const OpenMpiPort&) = delete;

  int open(const char* paths, std::uint32_t local_rank) {
    gba_ompi_port_close(&port_);
    return gba_ompi_port_open(paths, local_rank, &port_);
  }
  /// The path that this process opens, or "shares N" if it opens none.
  std::string of(const char* paths, std::uint32_t local_rank) {
    const std::size_t before = fake_gba::opened().size();
    EXPECT_EQ(open(paths, local_rank), 0) << port_.trouble;
    EXPECT_STREQ(port_.trouble, "");
    const auto opened = fake_gba::opened();
    if (opened.size() == before) {
      EXPECT_EQ(port_.port, nullptr);
      EXPECT_NE(port_.holder, local_rank);
      return "shares " + std::to_string(port_.holder);
    }
    EXPECT_NE(port_.port, nullptr);
    EXPECT_EQ(port_.holder, local_rank);
    return opened[before];
  }

  gba_ompi_port_t port_{};
};

TEST_F(OpenMpiPort, OfAFunctionIsOpenedByOneProcessAndSharedByTheOthers) {
  EXPECT_EQ(of("/nowhere/gba0", 0), "/nowhere/gba0");
  EXPECT_EQ(of("/nowhere/gba0", 1), "shares 0");
  EXPECT_EQ(of("/nowhere/gba0", 7), "shares 0");
}

TEST_F(OpenMpiPort, OfSeveralFunctionsIsOneForEachOfTheFirstProcesses) {
  const char* const list = "/nowhere/gba0,0000:3b:00.0,/nowhere/gba2";
  EXPECT_EQ(of(list, 0), "/nowhere/gba0");
  EXPECT_EQ(of(list, 1), "0000:3b:00.0");
  EXPECT_EQ(of(list, 2), "/nowhere/gba2");
  EXPECT_EQ(of(list, 3), "shares 0");
  EXPECT_EQ(of(list, 7), "shares 1");
}

TEST_F(OpenMpiPort, OfAServerIsOneForEachProcess) {
  EXPECT_EQ(of("vfio-user:/nowhere/socket", 5), "vfio-user:/nowhere/socket");
  EXPECT_EQ(of("@abstract", 5), "@abstract");
  EXPECT_EQ(of("@first,@second", 2), "@first");
  EXPECT_EQ(of("@first,@second", 3), "@second");
  EXPECT_EQ(of("@first,/nowhere/gba0", 3), "shares 1");
}

TEST_F(OpenMpiPort, OfASocketsPathIsOneForEachProcess) {
  const std::string path = testing::TempDir() + "openmpi_port_test." + std::to_string(getpid());
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(of(path.c_str(), 5), path);
  close(server);
  unlink(path.c_str());
}

TEST_F(OpenMpiPort, DefaultsToThatOfTheEnvironment) {
  setenv("GBA_DEVICE", "@first,@second", 1);
  fake_gba::list_functions({"0000:01:00.0"});
  EXPECT_EQ(of("", 1), "@second");
  EXPECT_EQ(of(nullptr, 0), "@first");
  EXPECT_EQ(of("@named", 0), "@named");
}

TEST_F(OpenMpiPort, DefaultsToAFunctionOfTheMachine) {
  if (access("/dev/gba0", F_OK) == 0) {
    GTEST_SKIP() << "this machine has /dev/gba0";
  }
  fake_gba::list_functions({"0000:01:00.0", "0000:02:00.0"});
  EXPECT_EQ(of(nullptr, 0), "0000:01:00.0");
  EXPECT_EQ(of(nullptr, 1), "0000:02:00.0");
  EXPECT_EQ(of(nullptr, 2), "shares 0");
  fake_gba::list_functions({});
  EXPECT_EQ(of(nullptr, 0), "(default)") << "libgba's default reports what is missing";
}

TEST_F(OpenMpiPort, ThatCannotBeOpenedGivesTheReason) {
  fake_gba::refuse_opening(-EACCES);
  EXPECT_EQ(open("/nowhere/gba0", 0), -EACCES);
  EXPECT_EQ(port_.port, nullptr);
  EXPECT_STREQ(port_.trouble, "the device is not available");
  gba_ompi_port_close(&port_);
  EXPECT_EQ(fake_gba::open_ports(), 0);
}

/// A server may have fewer ports than there are processes.
TEST_F(OpenMpiPort, OfAFullServerIsSharedWithAnyHolder) {
  fake_gba::refuse_opening(-EBUSY);
  EXPECT_EQ(open("@server", 3), 0);
  EXPECT_EQ(port_.port, nullptr);
  EXPECT_EQ(port_.holder, GBA_OMPI_ANY_HOLDER);
  EXPECT_STREQ(port_.trouble, "");
  fake_gba::refuse_opening(-EBUSY);
  EXPECT_EQ(open("/nowhere/gba0", 0), -EBUSY) << "the function of another job";
}

TEST_F(OpenMpiPort, ListMustBeValid) {
  EXPECT_EQ(open("/nowhere/gba0,", 1), -EINVAL);
  EXPECT_STREQ(port_.trouble, "the list of devices \"/nowhere/gba0,\" has a path that is empty");
  EXPECT_EQ(open(",@first", 0), -EINVAL);
  EXPECT_EQ(open(std::string(256, 'a').c_str(), 0), -EINVAL);
  EXPECT_EQ(open(std::string(255, 'a').c_str(), 0), 0);
}

TEST_F(OpenMpiPort, IsClosedOnce) {
  ASSERT_EQ(open("@first", 0), 0);
  EXPECT_EQ(fake_gba::open_ports(), 1);
  gba_ompi_port_close(&port_);
  gba_ompi_port_close(&port_);
  EXPECT_EQ(fake_gba::open_ports(), 0);
}

}  // namespace
