// SPDX-License-Identifier: Apache-2.0
// gba groups: its output alone shows why a barrier hangs.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/lingering_sockets.hpp"

namespace tool_test {
namespace {

using driver_test::DevicePointer;
using driver_test::GroupPointer;
using testing::ContainsRegex;
using testing::HasSubstr;

class Groups : public driver_test::BarrierTest {
 protected:
  using BarrierTest::BarrierTest;
  [[nodiscard]] Json look(const std::string& interval = "0.05") const {
    return gba_json({"groups", path(), "--interval", interval});
  }
  [[nodiscard]] Json only_group() const {
    const Json groups = look().at("groups");
    EXPECT_EQ(groups.size(), 1U) << groups;
    return groups.at(0);
  }
  /// Looks until the only group is in `state`, and `arrived` members have arrived.
  [[nodiscard]] Json wait_for(const std::string& state, int arrived = 0) const {
    Json group = only_group();
    for (int looks = 0; looks < 1000 && (group.at("state") != state || group.at("arrived") < arrived); ++looks) {
      group = only_group();
    }
    EXPECT_EQ(group.at("state"), state) << group;
    return group;
  }
};

TEST_F(Groups, ShowsNoGroupIfNoneIsInUse) {
  const Json result = look();
  EXPECT_EQ(result.at("device"), "vfio-user:" + path());
  EXPECT_EQ(result.at("groups"), Json::array());
  EXPECT_THAT(gba({"groups", path(), "--interval", "0.01"}).output, HasSubstr(": 0 of 32 groups in use\n"));
}

TEST_F(Groups, NamesTheMemberThatABarrierWaitsForAndItsPort) {
  // The last of three members stops before barrier 21.
  start_members(3, {.rounds = 40, .wait_ms = 60'000, .hold_at = 21});
  ASSERT_TRUE(member(2).wait_for_output("holding", driver_test::kLimit)) << member(2).output();
  const Json group = wait_for("waiting", 2);
  EXPECT_EQ(group.at("sequence"), 20);
  EXPECT_EQ(group.at("members"), 3);
  EXPECT_EQ(group.at("arrived"), 2);
  ASSERT_EQ(group.at("missing").size(), 1U) << group;
  EXPECT_EQ(group.at("missing")[0].at("member"), 2);
  EXPECT_TRUE(group.at("missing")[0].at("port").is_number()) << group;
  EXPECT_GE(group.at("missing")[0].at("port"), 1) << "port 0 is the owner's";
  EXPECT_GT(group.at("round_age_ns"), 0);
  EXPECT_TRUE(group.at("since").is_string());
  EXPECT_EQ(group.at("rate"), 0);
  EXPECT_EQ(group.at("error"), nullptr);
  const std::string later = gba({"groups", path(), "--interval", "0.05"}).output;
  EXPECT_THAT(later, ContainsRegex("0 +waiting +2/3 +20 +0 .*missing: member 2 \\(port [0-9]+\\)")) << later;
  EXPECT_GT(only_group().at("round_age_ns"), group.at("round_age_ns"));
}

TEST_F(Groups, NamesTheMembersThatHaveNotJoined) {
  const auto device = open();
  const auto handle = alloc(device.get(), 300);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 299);
  EXPECT_EQ(only_group().at("state"), "idle");
  gba_group_arrive(member.get(), 1);
  const Json group = wait_for("waiting");
  EXPECT_EQ(group.at("missing").size(), 299U);
  EXPECT_EQ(group.at("missing")[0], Json::parse(R"({"member": 0, "port": null})"));
  EXPECT_THAT(
      gba({"groups", path(), "--interval", "0.01"}).output,
      HasSubstr("missing: members 0 (no port), 1 (no port), 2 (no port), 3 (no port), 4 (no port), 5 (no port), "
                "6 (no port), 7 (no port) and 291 more"));
}

TEST_F(Groups, ShowsTheRateOfARunningGroup) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  EXPECT_EQ(only_group().at("state"), "disabled");
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 0);
  std::uint64_t k = 0;
  Json group;
  // Again if this process had no processor between two looks.
  for (int tries = 0; tries < 50 && (group.is_null() || group.at("state") != "running"); ++tries) {
    test_support::Process looker({test_support::program("gba"), "groups", path(), "--interval", "0.2", "--json"});
    while (!looker.wait(test_support::Seconds{0})) {
      gba_group_arrive(member.get(), ++k);
      ASSERT_EQ(gba_group_wait(member.get(), k, 60'000'000'000), 0) << gba_error_text();
    }
    group = Json::parse(looker.output()).at("groups").at(0);
  }
  EXPECT_EQ(group.at("state"), "running") << group;
  EXPECT_GT(group.at("rate"), 0);
  EXPECT_EQ(group.at("missing"), Json::array());
}

TEST_F(Groups, SaysWhyAGroupIsInError) {
  const auto device = open();
  const auto handle = alloc(device.get(), 2);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto mine = join(device.get(), handle, 0);
  test_support::Process& other = add_member(handle, 1, {.rounds = 1, .wait_ms = 60'000, .hold_at = 1});
  gba_group_status status{};
  status.ports[1] = GBA_NO_PORT;
  for (int looks = 0; looks < 100'000 && status.ports[1] == GBA_NO_PORT; ++looks) {
    ASSERT_EQ(gba_group_get_status(device.get(), handle.group, &status), 0) << gba_error_text();
  }
  ASSERT_NE(status.ports[1], GBA_NO_PORT) << other.output();
  other.signal(SIGKILL);
  const Json group = wait_for("error");
  EXPECT_EQ(group.at("error"), Json::parse(R"({"code": "LEAVE", "member": 1})"));
  EXPECT_THAT(gba({"groups", path(), "--interval", "0.01"}).output, HasSubstr("LEAVE of member 1 (no port)"));
}

TEST_F(Groups, WatchesUntilItIsInterrupted) {
  test_support::Process looker(
      {test_support::program("gba"), "groups", path(), "--watch", "--interval", "0.02", "--json"});
  const auto lines = [&] {
    const std::string text = looker.output();
    return std::count(text.begin(), text.end(), '\n');
  };
  for (int waits = 0; waits < 1000 && lines() < 3; ++waits) {
    (void)looker.wait(test_support::Seconds{0.02});
  }
  looker.signal(SIGINT);
  const auto exit = looker.wait(test_support::Seconds{20});
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << looker.output();
  std::istringstream text(looker.output());
  int looks = 0;
  for (std::string line; std::getline(text, line); ++looks) {
    EXPECT_EQ(Json::parse(line).at("groups"), Json::array()) << "one object per line";
    EXPECT_EQ(Json::parse(line).at("schema"), 1) << line;
  }
  EXPECT_GE(looks, 3);
}

TEST_F(Groups, WatchEndsWithTheDevice) {
  test_support::Process looker({test_support::program("gba"), "groups", path(), "--watch", "--interval", "0.02"});
  ASSERT_TRUE(looker.wait_for_output("in use", driver_test::kLimit)) << looker.output();
  kill_device();
  const auto exit = looker.wait(driver_test::kLimit);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 4) << looker.output();
  EXPECT_THAT(looker.output(), HasSubstr("lost"));
}

class OnePort : public Groups {
 protected:
  OnePort() : Groups({"--ports", "1"}) {}

  /// A job whose member 1 never arrives. It makes no call while gba reads its status.
  void hang() {
    job_ = open();
    const auto handle = alloc(job_.get(), 2);
    ASSERT_EQ(gba_group_enable(job_.get(), &handle), 0) << gba_error_text();
    member_ = join(job_.get(), handle, 0);
    gba_group_arrive(member_.get(), 1);
  }
  void expect_seen() {
    const Json result = look();
    EXPECT_EQ(result.at("seen_by"), ::getpid());
    ASSERT_EQ(result.at("groups").size(), 1U) << result;
    EXPECT_EQ(result.at("groups")[0].at("state"), "waiting");
    EXPECT_EQ(result.at("groups")[0].at("missing"), Json::parse(R"([{"member": 1, "port": null}])"));
  }

  /// The names of this process's status sockets, each with its '@'.
  static std::vector<std::string> status_sockets() {
    std::vector<std::string> names;
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      const auto at = line.find("@gba-status/");
      if (at != std::string::npos && line.find("/" + std::to_string(::getpid()) + "/") != std::string::npos) {
        names.push_back(line.substr(at));
      }
    }
    return names;
  }
  /// Empty if the socket does not listen.
  static base::UniqueFd connect_to(const std::string& name) {
    base::UniqueFd client(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // limits connect()
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path);
    address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      client.reset();
    }
    return client;
  }

  DevicePointer job_;
  GroupPointer member_;
};

TEST_F(OnePort, IsReadThroughTheProcessOfAHangingJob) {
  hang();
  expect_seen();
  const std::string text = gba({"groups", path(), "--interval", "0.01"}).output;
  EXPECT_THAT(text, HasSubstr(fmt::format(", as seen by process {}: 1 of 32 groups in use\n", ::getpid())));
  EXPECT_THAT(text, HasSubstr("missing: member 1 (no port)"));
  const Json info = gba_json({"info", path()});
  EXPECT_EQ(info.at("seen_by"), ::getpid());
  EXPECT_EQ(info.at("condition"), "ok");
  EXPECT_EQ(info.at("counters").at("arrivals"), 1);
  EXPECT_THAT(gba({"info", path()}).output, HasSubstr(fmt::format("as seen by process {}", ::getpid())));
}

TEST_F(OnePort, IsReadDirectlyIfItIsFree) {
  EXPECT_EQ(look().at("seen_by"), nullptr);
  EXPECT_EQ(gba_json({"info", path()}).at("seen_by"), nullptr);
}

TEST_F(OnePort, ClientsThatNeverReadDelayNoOtherClient) {
  hang();
  const auto names = status_sockets();
  ASSERT_EQ(names.size(), 1U);
  std::vector<base::UniqueFd> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(connect_to(names[0]));
    ASSERT_TRUE(silent.back()) << i << ": errno " << errno;
  }
  expect_seen();
  // The observed process is not delayed, and can close the device.
  const auto handle = alloc(job_.get(), 1);
  ASSERT_EQ(gba_group_enable(job_.get(), &handle), 0) << gba_error_text();
  const auto other = join(job_.get(), handle, 0);
  for (std::uint64_t k = 1; k <= 100; ++k) {
    gba_group_arrive(other.get(), k);
    ASSERT_EQ(gba_group_wait(other.get(), k, 60'000'000'000), 0) << gba_error_text();
  }
}

TEST_F(OnePort, ClientsThatSendWhatTakesLongToCloseDelayNothing) {
  test_support::LingeringSockets sockets;
  hang();
  const auto names = status_sockets();
  ASSERT_EQ(names.size(), 1U);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(connect_to(names[0]));
    sockets.send(clients.back().get(), "x", 1, 1);  // the process accepts one each 10 ms
  }
  expect_seen();
  for (int i = 0; i < 4; ++i) {
    clients.push_back(connect_to(names[0]));
    sockets.send(clients.back().get(), "x", 1, 1);
  }
  member_.reset();
  job_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{30}) << "the close of each takes a minute";
  sockets.end();
}

TEST_F(OnePort, AnswersNoOtherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  hang();
  const auto names = status_sockets();
  ASSERT_EQ(names.size(), 1U);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) {
      ::_exit(2);
    }
    const auto client = connect_to(names[0]);
    char byte = 0;
    ::_exit(client && ::recv(client.get(), &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it got an answer, or the connection stayed open";
  expect_seen();
}

TEST_F(OnePort, AForkedChildDoesNotAnswerForItsParent) {
  hang();
  const auto names = status_sockets();
  ASSERT_EQ(names.size(), 1U);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const base::UniqueFd reader(pipe[0]);
  base::UniqueFd writer(pipe[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    writer.reset();
    char byte = 0;
    const auto got = ::read(reader.get(), &byte, 1);  // returns when the parent is done
    ::_exit(got == 0 ? 0 : 1);
  }
  expect_seen();
  member_.reset();
  job_.reset();
  EXPECT_FALSE(connect_to(names[0])) << "the child keeps the socket open";
  job_ = open();
  EXPECT_EQ(look().at("seen_by"), ::getpid());
  writer.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(OnePort, IsBusyIfItsJobDoesNotAnswerAndTheMessageNamesOtherWays) {
  ::setenv("GBA_STATUS", "off", 1);
  const auto job = open();
  ::unsetenv("GBA_STATUS");
  EXPECT_TRUE(status_sockets().empty());
  for (const char* command : {"groups", "info"}) {
    const auto outcome = gba({command, path()});
    EXPECT_EQ(outcome.exit.code, 3) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("unless GBA_STATUS=off"));
    EXPECT_THAT(outcome.output, HasSubstr("Every port of the switch shows the groups of all"));
    EXPECT_THAT(outcome.output, HasSubstr("SHMEM_BARRIER_WARN"));
  }
}

}  // namespace
}  // namespace tool_test
