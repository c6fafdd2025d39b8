// SPDX-License-Identifier: Apache-2.0
// Members that meet in a folder, also from namespaces of their own, as containers have.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "kv/exchange/meeting_place.hpp"
#include "tests/support/pod.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using test_support::Pod;
using test_support::TempDir;

constexpr const char* kText = "the block of a pod";

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// Publishes a block in the folder's exchange, until `stop` is there.
int serve(const std::string& folder, const std::string& stop) {
  const std::string directory = folder;
  Member owner("pods", {.directory = directory.c_str()});
  owner.make_memory(4096);
  std::strcpy(owner.memory(), kText);
  if (owner.publish("key", 0, std::strlen(kText)) != 0) {
    return 1;
  }
  while (::access(stop.c_str(), F_OK) != 0) {
    ::usleep(1000);
  }
  return 0;
}

void expect_block(const std::string& folder) {
  Member reader("pods", {.directory = folder.c_str()});
  const auto block = reader.find_soon("key");
  ASSERT_EQ(block.status, 0) << reader.error();
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), 0) << reader.error();
  EXPECT_EQ(bytes, kText);
}

TEST(ExchangeFolder, HasTheMembersThatMeetInIt) {
  const TempDir dir;
  const std::string folder = dir.file("exchanges");  // made by the first
  {
    Member owner("pods", {.directory = folder.c_str()});
    owner.make_memory(4096);
    std::strcpy(owner.memory(), kText);
    ASSERT_EQ(owner.publish("key", 0, std::strlen(kText)), 0);
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    expect_block(folder);
    Member elsewhere("pods", {.directory = ""});
    EXPECT_NE(elsewhere.find("key").status, 0);
  }
  EXPECT_EQ(files_in(folder), 0U) << "of members that have left";
}

TEST(ExchangeFolder, MayHaveALongPath) {
  const TempDir dir;
  const std::string folder = dir.file(std::string(200, 'f'));
  Member owner("pods", {.directory = folder.c_str()});
  owner.make_memory(4096);
  std::strcpy(owner.memory(), kText);
  ASSERT_EQ(owner.publish("key", 0, std::strlen(kText)), 0);
  expect_block(folder);
}

TEST(ExchangeFolder, GivesTheSeatOfAMemberThatWasKilledToTheNextOne) {
  const TempDir dir;
  const std::string folder = dir.file("exchanges");
  for (int round = 0; round < 2; ++round) {
    {
      const OtherProcess killed([&] { return Member("pods", {.directory = folder.c_str()}); });
    }
    EXPECT_EQ(files_in(folder), 2U) << "its socket and its lock";
    Member next("pods", {.directory = folder.c_str()});
    EXPECT_EQ(next.stats().seat, 0U);
    EXPECT_EQ(files_in(folder), 2U);
  }
  EXPECT_EQ(files_in(folder), 0U);
}

TEST(ExchangeFolder, IsRefusedUnlessItIsThisUsersAlone) {
  const TempDir dir;
  const std::string file = dir.file("file");
  std::ofstream(file) << '\n';
  const std::string shared = dir.file("shared");
  std::filesystem::create_directory(shared);
  ::chmod(shared.c_str(), 0777);
  for (const auto& [folder, code, text] : {std::tuple{file, -ENOTDIR, "is no folder"},
                                           {shared, -EACCES, "has mode 777: it must belong to user"},
                                           {dir.file("no/such"), -ENOENT, "cannot make the folder"}}) {
    const auto options = Options{.directory = folder.c_str()}.get();
    shmemx_exchange_t* exchange = nullptr;
    EXPECT_EQ(shmemx_exchange_open("pods", &options, &exchange), code) << folder;
    EXPECT_THAT(shmemx_error_text(), testing::AllOf(testing::HasSubstr(folder), testing::HasSubstr(text)));
  }
}

TEST(ExchangeFolder, IsOfNoNetworkFileSystem) {
  EXPECT_STREQ(shmem::exchange::network_file_system(0x6969), "NFS");
  EXPECT_STREQ(shmem::exchange::network_file_system(0xFF534D42), "CIFS");
  constexpr std::uint64_t kLocal[] = {0x0102'1994, 0xEF53, 0x5846'5342, 0x9123'683E, 0x794C'7630};  // tmpfs, ext4, ...
  for (const std::uint64_t type : kLocal) {
    EXPECT_EQ(shmem::exchange::network_file_system(type), nullptr);
  }
}

TEST(ExchangeFolder, ThatOthersMayReadShowsThemNoMember) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const TempDir dir;
  ::chmod(dir.path().c_str(), 0755);
  const std::string folder = dir.file("exchanges");
  ASSERT_EQ(::mkdir(folder.c_str(), 0755), 0);
  Member owner("pods", {.directory = folder.c_str()});
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder + "/pods.0").copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const bool left = ::setuid(65534) == 0;
    const int failed = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::_exit(left && failed != 0 && errno == EACCES ? 0 : 1);
  }
  int status = 0;
  ::waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
}

int serve_as_pod(const std::string& folder, const std::string& other_path, const std::string& stop) {
  return test_support::live_as_in_container(folder, other_path) ? serve(other_path, stop) : Pod::kNotPossible;
}

TEST(ExchangeFolder, HasMembersOfAllNamespaces) {
  constexpr int kOwn = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS;
  for (const int namespaces : {kOwn, kOwn | CLONE_NEWUSER}) {
    SCOPED_TRACE(namespaces == kOwn ? "of this user namespace" : "with a user namespace");
    const TempDir dir;
    const std::string folder = dir.file("exchanges");
    const std::string other_path = dir.file("elsewhere");
    ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
    ASSERT_EQ(::mkdir(other_path.c_str(), 0700), 0);
    const std::string stop = dir.file("stop");
    Pod pod(namespaces, [&] { return serve_as_pod(folder, other_path, stop); });
    {
      Member reader("pods", {.directory = folder.c_str()});
      const auto block = reader.find_soon("key");
      std::string bytes;
      if (block.status == 0) {
        EXPECT_EQ(reader.pull(block, bytes), 0) << reader.error();
        EXPECT_EQ(bytes, kText);
      }
      std::ofstream(stop) << '\n';
      const int code = pod.exit_code();
      if (code == Pod::kNotPossible) {
        GTEST_SKIP() << "this machine does not permit such namespaces";
      }
      EXPECT_EQ(code, 0);
      EXPECT_EQ(block.status, 0) << "not found";
    }
    EXPECT_EQ(files_in(folder), 0U);
  }
}

}  // namespace
