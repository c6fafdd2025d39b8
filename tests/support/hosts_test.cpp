// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace {

using test_support::Hosts;
using test_support::none_matching;
using test_support::Process;
using test_support::Seconds;
using testing::HasSubstr;

constexpr Seconds kLimit{60};

std::vector<std::string> echo(const std::string& what, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"python3", ECHO_PROGRAM, what});
  return arguments;
}

std::size_t answers(const Process& client) {
  const std::string text = client.output();
  std::size_t count = 0;
  for (auto at = text.find("answer"); at != std::string::npos; at = text.find("answer", at + 1)) {
    ++count;
  }
  return count;
}

/// True as soon as the client has more answers than before.
bool answered_again(const Process& client) {
  const auto before = answers(client);
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (answers(client) <= before + 2 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return answers(client) > before + 2;
}

/// The networks of all processes.
std::set<std::string> networks() {
  std::set<std::string> found;
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const auto network = std::filesystem::read_symlink(process.path() / "ns/net", gone);
    if (!gone) {
      found.insert(network);
    }
  }
  return found;
}

std::string network_of(const Hosts& hosts, int host) {
  const auto outcome = hosts.run(host, {"readlink", "/proc/self/ns/net"});
  return outcome.output.substr(0, outcome.output.find('\n'));
}

class HostsOfTests : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = Hosts::missing()) {
      GTEST_SKIP() << *missing;
    }
  }
};

TEST_F(HostsOfTests, ReachEachOtherByNameOverBothFamilies) {
  const Hosts hosts(3);
  std::vector<std::pair<std::string, std::string>> families{{"ipv4", Hosts::ipv4(2)}};
  if (Hosts::has_ipv6()) {
    families.emplace_back("ipv6", Hosts::ipv6(2));
  }
  for (const auto& [family, address] : families) {
    Process server = hosts.start(2, echo("serve", {address}));
    ASSERT_TRUE(server.wait_for_output("serving", kLimit)) << server.output();
    for (const int from : {0, 1}) {
      EXPECT_THAT(hosts.run(from, echo("talk", {"h2", family, "1000000"})).output,
                  HasSubstr("whole " + address + "\n"));
    }
    // Outside of these hosts even the address does not exist.
    EXPECT_FALSE(test_support::run(echo("talk", {"h2", family, "1"})).exit.clean());
  }
}

TEST_F(HostsOfTests, HaveNamesIdsAndMemoryOfTheirOwn) {
  const Hosts hosts(2);
  const auto look = [&hosts](int host) {
    return hosts
        .run(host, {"sh", "-c", "ls /dev/shm; touch /dev/shm/x$(hostname); hostname; echo $SHMEM_HOST_ID $MORE"},
             {"MORE=more"})
        .output;
  };
  EXPECT_EQ(look(0), "h0\n" + hosts.id(0) + " more\n");
  EXPECT_EQ(look(1), "h1\n" + hosts.id(1) + " more\n");
  EXPECT_NE(hosts.id(0), hosts.id(1));
  EXPECT_EQ(hosts.run(0, {hosts.agent(), "-x", "h1", "hostname;", "echo", "$SHMEM_HOST_ID"}).output,
            "h1\n" + hosts.id(1) + "\n");
  EXPECT_EQ(hosts.slots(2), "h0:2,h1:2");
}

TEST_F(HostsOfTests, CanBeUsedByHand) {
  const auto tool = test_support::test_program("on_hosts");
  const auto outcome = test_support::run({tool, "2", "sh", "-c", "hostname; grep -c ' h1$' /etc/hosts; exit 5"});
  EXPECT_EQ(outcome.output, Hosts::has_ipv6() ? "h0\n2\n" : "h0\n1\n");
  EXPECT_EQ(outcome.exit.code, 5);
  EXPECT_EQ(test_support::run({tool, "0", "true"}).exit.code, 2);
}

TEST_F(HostsOfTests, CannotReachEachOtherWhileALinkIsDown) {
  const Hosts hosts(2);
  Process server = hosts.start(1, echo("serve", {Hosts::ipv4(1)}));
  ASSERT_TRUE(server.wait_for_output("serving", kLimit)) << server.output();
  const Process client = hosts.start(0, echo("ask", {Hosts::ipv4(1)}));
  for (const int cut : {0, 1}) {
    const auto before = hosts.traffic(cut);
    ASSERT_TRUE(answered_again(client)) << client.output();
    const auto after = hosts.traffic(cut);
    EXPECT_GT(after.sent, before.sent);
    EXPECT_GT(after.received, before.received);
    hosts.link_down(cut);
    const auto down = hosts.traffic(cut);
    const auto count = answers(client);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LE(answers(client), count + 1) << "the client waits for one answer at a time";
    EXPECT_EQ(hosts.traffic(cut).sent, down.sent);
    EXPECT_EQ(hosts.traffic(cut).received, down.received);
    hosts.link_up(cut);
    EXPECT_TRUE(answered_again(client)) << "after the link of " << cut << " is up again";
  }
}

TEST_F(HostsOfTests, LoseFramesThatAreTooLongForTheSwitch) {
  const Hosts hosts(2);
  Process server = hosts.start(1, echo("serve", {Hosts::ipv4(1)}));
  ASSERT_TRUE(server.wait_for_output("serving", kLimit)) << server.output();
  const auto talk = [&hosts](Seconds limit) {
    return hosts.run(0, echo("talk", {"h1", "ipv4", "100000"}), {}, limit).output;
  };
  for (const int host : {0, 1}) {
    hosts.set_mtu(host, 9000);
  }
  EXPECT_THAT(talk(kLimit), HasSubstr("whole"));
  for (const int host : {0, 1}) {
    hosts.set_mtu(host, 9000, 1500);
  }
  EXPECT_EQ(talk(Seconds{0.5}), "");
}

class SlowHosts : public HostsOfTests {
 protected:
  void SetUp() override {
    HostsOfTests::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (::access("/dev/net/tun", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "there is no /dev/net/tun";
    }
    hosts_ = std::make_unique<Hosts>(2);
  }
  /// Replaces the cables of both hosts.
  void use(const test_support::Cable& cable) {
    for (const int host : {0, 1}) {
      hosts_->use_cable(host, cable);
    }
    server_ = std::make_unique<Process>(hosts_->on(1, echo("serve", {Hosts::ipv4(1)})));
    ASSERT_TRUE(server_->wait_for_output("serving", kLimit)) << server_->output();
  }
  /// How long it takes to connect and to send this many bytes there and back.
  [[nodiscard]] double seconds(int bytes) const {
    const auto text = hosts_->run(0, echo("talk", {"h1", "ipv4", std::to_string(bytes)})).output;
    EXPECT_THAT(text, HasSubstr("whole"));
    const auto at = text.find("seconds ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + 8));
  }

  std::unique_ptr<Hosts> hosts_;
  std::unique_ptr<Process> server_;
};

/// The connection and the data each pass over two cables there and back. A longer time is not a failure.
TEST_F(SlowHosts, DelayFrames) {
  use({.delay = std::chrono::milliseconds(100)});
  EXPECT_GE(seconds(1), 0.8);
}

TEST_F(SlowHosts, LimitTheBandwidth) {
  use({.kilobits_per_second = 10'000});
  EXPECT_GE(seconds(1'000'000), 0.8);
}

TEST_F(SlowHosts, LoseSomeFramesButNoTcpData) {
  use({.loss = 0.03});
  const Process client = hosts_->start(0, echo("ask", {Hosts::ipv4(1)}));
  // A question and its answer pass over two cables each, so about one in nine is lost. No loss in 120 is very unlikely.
  const auto end = std::chrono::steady_clock::now() + kLimit;
  const auto asked = [&client] {
    const std::string text = client.output();
    const auto at = text.rfind("answer ", text.rfind('\n'));
    return at == std::string::npos ? 0UL : std::stoul(text.substr(at + 7));
  };
  while (asked() < 120 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(asked(), 120U);
  EXPECT_LT(answers(client), asked());
  EXPECT_GE(seconds(20'000), 0);
}

TEST_F(SlowHosts, CannotReachEachOtherOverACableThatIsDown) {
  use({});
  EXPECT_GE(seconds(100'000), 0);
  hosts_->link_down(1);
  EXPECT_EQ(hosts_->run(0, echo("talk", {"h1", "ipv4", "1"}), {}, Seconds{0.5}).output, "");
  hosts_->link_up(1);
  EXPECT_GE(seconds(1), 0);
}

TEST_F(HostsOfTests, CannotReachThoseOfAnotherNetwork) {
  const Hosts ones(2);
  const Hosts others(2);
  Process server = ones.start(1, echo("serve", {Hosts::ipv4(1)}));
  ASSERT_TRUE(server.wait_for_output("serving", kLimit)) << server.output();
  EXPECT_THAT(ones.run(0, echo("talk", {"h1", "ipv4", "10"})).output, HasSubstr("whole"));
  EXPECT_THAT(others.run(0, echo("talk", {"h1", "ipv4", "10"})).output, HasSubstr("refused"));
  EXPECT_NE(ones.id(0), others.id(0));
}

TEST_F(HostsOfTests, LeaveNothingBehind) {
  std::set<std::string> mine;
  std::string mark;
  {
    const Hosts hosts(2);
    mark = hosts.id(0);
    mine = {network_of(hosts, 0), network_of(hosts, 1)};
    // A daemon that only the keeper can find.
    EXPECT_TRUE(hosts.run(0, {"sh", "-c", "setsid --fork sleep 1000." + std::to_string(::getpid())}).exit.clean());
  }
  const auto left = networks();
  for (const auto& network : mine) {
    EXPECT_THAT(network, HasSubstr("net:["));
    EXPECT_EQ(left.count(network), 0U);
  }
  EXPECT_TRUE(none_matching("1000." + std::to_string(::getpid())));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::temp_directory_path() / mark.substr(0, mark.find('.'))));
}

TEST_F(HostsOfTests, AreRemovedWithATestThatIsKilled) {
  const test_support::TempDir dir;
  const std::string seconds = "2000." + std::to_string(::getpid());
  const pid_t test = ::fork();
  if (test == 0) {
    ::setenv("TMPDIR", dir.path().c_str(), 1);
    const Hosts hosts(2);
    if (!hosts.run(1, {"sh", "-c", "setsid --fork sleep " + seconds}).exit.clean()) {
      ::_exit(1);
    }
    std::ofstream(dir.file("network")) << network_of(hosts, 1) << '\n';
    ::pause();
  }
  std::string network;
  auto end = std::chrono::steady_clock::now() + kLimit;
  while (network.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream file(dir.file("network"));
    if (std::string line; std::getline(file, line) && !file.eof()) {
      network = line;
    }
  }
  EXPECT_EQ(networks().count(network), 1U) << network;
  ::kill(test, SIGKILL);
  ::waitpid(test, nullptr, 0);
  end = std::chrono::steady_clock::now() + kLimit;
  while (networks().count(network) != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(networks().count(network), 0U);
}

}  // namespace
