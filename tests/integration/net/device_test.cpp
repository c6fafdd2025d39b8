// SPDX-License-Identifier: Apache-2.0
// Hosts whose PEs have ports of one device: their barriers go through it, and no barrier is lost when the device, one
// host's connection to it or a link fails.
#include <signal.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "tests/integration/net/job_on_hosts.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/gba_debug.h"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

/// The device of a PE, and the name of its switch that the PE is given.
struct Port {
  const FakeDevice* device;
  std::string switch_name;
};

/// PEs on hosts that run barriers until they are told to end. They record their progress in a file that all of them
/// share, so that only the barriers need the network. They arrive at different times, so that a PE is missing when a
/// failure strikes.
class BarriersOnHosts {
 public:
  static constexpr std::uint64_t kEndless = 1'000'000'000'000;

  BarriersOnHosts(const Hosts& hosts, const std::vector<int>& host_of, const FakeDevice& device,
                  const JobOnHosts::Environment& all = {}, std::uint64_t rounds = kEndless)
      : job_(hosts, host_of, command(rounds), settings(all), ports(std::vector<Port>(host_of.size(), {&device, ""}))) {}
  /// Gives each PE a port of its own.
  BarriersOnHosts(const Hosts& hosts, const std::vector<int>& host_of, const std::vector<Port>& port_of,
                  std::uint64_t rounds = kEndless)
      : job_(hosts, host_of, command(rounds), settings({}), ports(port_of)) {}

  [[nodiscard]] const JobOnHosts& job() const { return job_; }
  [[nodiscard]] std::string output() const { return job_.output(); }

  /// The round that PE 0 is in.
  [[nodiscard]] std::uint64_t round() const {
    std::uint64_t entered = 0;
    std::ifstream(dir_.file("board"), std::ios::binary).read(reinterpret_cast<char*>(&entered), sizeof entered);
    return entered;
  }
  /// Waits for that many more barriers; false if they do not come.
  [[nodiscard]] bool goes_on(std::uint64_t rounds) const {
    const auto before = round();
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (round() <= before + rounds && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return round() > before + rounds;
  }
  /// Waits until the PEs have begun to use the device that many times.
  [[nodiscard]] bool await_use(int times) const {
    const std::string text = "the device is in use, " + std::to_string(times) + " times by now;";
    return job_.pe(0).wait_for_output(text, kLimit);
  }
  void signal(int pe, int number) const {
    const pid_t pid = pid_of(job_.pe(static_cast<std::size_t>(pe)).output(), pe);
    ASSERT_GT(pid, 0) << output();
    ASSERT_EQ(::kill(pid, number), 0);
  }
  /// Expects that all PEs have completed the same barriers and left none before all had arrived.
  void expect_good_end() const {
    EXPECT_THAT(job_.codes(kLimit), Each(0)) << output();
    std::vector<unsigned long long> barriers;
    for (std::size_t pe = 0; pe < job_.size(); ++pe) {
      const std::string said = job_.pe(pe).output();
      EXPECT_THAT(said, HasSubstr("early 0,"));
      barriers.push_back(sum_of(said, "by device") + sum_of(said, "by software"));
    }
    EXPECT_THAT(barriers, Each(barriers.front())) << output();
  }
  void end() const {
    signal(0, SIGUSR1);
    expect_good_end();
  }
  [[nodiscard]] unsigned long long by_device() const { return sum_of(output(), "by device"); }
  [[nodiscard]] unsigned long long by_software() const { return sum_of(output(), "by software"); }

 private:
  std::vector<std::string> command(std::uint64_t rounds) {
    const std::string file = dir_.file("board");
    std::ofstream(file).flush();
    std::filesystem::resize_file(file, 4096);
    return {test_program("barrier_pes"), std::to_string(rounds), "--watch", "--board", file, "--skew", "500"};
  }
  static JobOnHosts::Environment settings(JobOnHosts::Environment all) {
    all.insert(all.end(), {"SHMEM_GBA=require", "SHMEM_INFO=1", "SHMEM_BARRIER_TIMEOUT=60"});
    return all;
  }
  static std::vector<JobOnHosts::Environment> ports(const std::vector<Port>& port_of) {
    std::vector<JobOnHosts::Environment> own;
    for (const auto& [device, switch_name] : port_of) {
      own.push_back({"GBA_DEVICE=" + device->path()});
      if (!switch_name.empty()) {
        own.back().push_back("SHMEM_GBA_SWITCH=" + switch_name);
      }
    }
    return own;
  }

  TempDir dir_;
  JobOnHosts job_;
};

class DeviceOfHosts : public OnHosts {
 protected:
  using Places = std::vector<int>;
  static inline const std::array<Places, 3> kPlaces{{{0, 1}, {0, 1, 2}, {0, 0, 1, 1}}};

  static std::uint64_t releases(const FakeDevice& device) {
    return sum_of(run({program("gba"), "info", "--json", device.path()}).output, "\"releases\":");
  }

  /// Waits for a random moment in the middle of a job's barriers.
  void let_it_go_on(const BarriersOnHosts& job) {
    ASSERT_TRUE(job.goes_on(20 + random_() % 50)) << job.output();
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000));
  }

 private:
  std::minstd_rand random_{std::random_device{}()};
};

TEST_F(DeviceOfHosts, DoesTheirBarriers) {
  const Hosts hosts(3);
  for (const auto& places : kPlaces) {
    const FakeDevice device;
    constexpr std::uint64_t kRounds = 200;
    const BarriersOnHosts job(hosts, places, device, {}, kRounds);
    job.expect_good_end();
    EXPECT_GE(job.by_device(), kRounds * places.size()) << job.output();
    EXPECT_EQ(job.by_software(), 0U) << job.output();
    EXPECT_THAT(job.output(), HasSubstr(places.size() == 3 ? "its 3 nodes synchronise through it"
                                                           : "its 2 nodes synchronise through it"));
    const auto told = run({program("gba"), "info", "--json", device.path()});
    EXPECT_GE(sum_of(told.output, "\"releases\":"), kRounds) << told.output;
  }
}

TEST_F(DeviceOfHosts, IsKilledAndStartedAgainAndNoBarrierIsLost) {
  const Hosts hosts(3);
  for (int i = 0; i < repeats(1, 17); ++i) {
    for (const auto& places : kPlaces) {
      FakeDevice device;
      const BarriersOnHosts job(hosts, places, device);
      let_it_go_on(job);
      device.kill();
      ASSERT_TRUE(job.goes_on(50)) << job.output();
      device.start();
      const BarriersOnHosts next(hosts, places, device, {"SHMEM_UID_SESSION_ID=" + Hosts::ipv4(0) + ":7001"}, 20);
      next.expect_good_end();
      EXPECT_EQ(next.by_software(), 0U) << next.output();
      ASSERT_TRUE(job.goes_on(50)) << job.output();
      job.end();
      EXPECT_GT(job.by_device(), 0U) << job.output();
      EXPECT_GE(job.by_software(), 100U) << job.output();
    }
  }
}

TEST_F(DeviceOfHosts, IsLostToOneHostAndNoBarrierIsLost) {
  const Hosts hosts(2);
  const FakeDevice device({"--debug-region"});
  struct Loss {
    const char* what;
    std::vector<int> places;
    std::function<void(const BarriersOnHosts&)> happen;
  };
  const std::array<Loss, 3> losses{
      {{"the first host's connection", {0, 0, 1, 1}, [](const auto& job) { job.signal(0, SIGUSR2); }},
       {"the other host's connection", {0, 0, 1, 1}, [](const auto& job) { job.signal(2, SIGUSR2); }},
       {"the link of a port", {0, 1}, [&](const auto&) {
          raw::Port client(device.socket());
          ASSERT_EQ(client.write(GBA_DEBUG_PORT, 0, 8, GBA_REGION_DEBUG), 0);
          client.write(GBA_DEBUG_INJECT, GBA_INJECT_LINK_DOWN, 8, GBA_REGION_DEBUG);
        }}}};
  for (const auto& [what, places, happen] : losses) {
    SCOPED_TRACE(what);
    const BarriersOnHosts job(hosts, places, device);
    let_it_go_on(job);
    happen(job);
    ASSERT_TRUE(job.goes_on(50)) << job.output();
    job.end();
    EXPECT_GT(job.by_device(), 0U) << job.output();
    EXPECT_GT(job.by_software(), 0U) << job.output();
  }
}

TEST_F(DeviceOfHosts, IsResetAndNoBarrierIsLost) {
  const Hosts hosts(2);
  const TempDir dir;
  const FakeDevice device({"--admin-socket", dir.file("admin.sock")});
  const BarriersOnHosts job(hosts, {0, 0, 1, 1}, device);
  let_it_go_on(job);
  const auto reset = run({program("gba"), "reset", "--yes", dir.file("admin.sock")});
  ASSERT_TRUE(reset.exit.clean()) << reset.output;
  ASSERT_TRUE(job.goes_on(50)) << job.output();
  job.end();
  EXPECT_GT(job.by_software(), 0U) << job.output();
}

TEST_F(DeviceOfHosts, NeedsNoLinkBetweenTheHostsWhileItWorks) {
  const Hosts hosts(2);
  FakeDevice device;
  const BarriersOnHosts job(hosts, {0, 0, 1, 1}, device);
  let_it_go_on(job);
  hosts.link_down(1);
  ASSERT_TRUE(job.goes_on(100)) << job.output();
  // The device is lost while its members cannot reach each other: no PE leaves the current barrier.
  device.kill();
  const auto stopped_in = job.round();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  // PE 0 may find the release of that barrier late, and enter one more.
  EXPECT_LE(job.round(), stopped_in + 1) << "the barriers go another way";
  hosts.link_up(1);
  ASSERT_TRUE(job.goes_on(50)) << job.output();
  job.end();
  EXPECT_GE(job.by_device(), 4 * 100U) << job.output();
}

TEST_F(DeviceOfHosts, IsUsedAgainByAJobThatHasLostIt) {
  const Hosts hosts(2);
  FakeDevice device;
  const BarriersOnHosts job(hosts, {0, 0, 1, 1}, device);
  const int times = repeats(1, 10);
  for (int i = 1; i <= times; ++i) {
    ASSERT_TRUE(job.await_use(i)) << job.output();
    device.kill();
    device.start();
  }
  ASSERT_TRUE(job.await_use(times + 1)) << job.output();
  job.end();
}

/// Each shuffle of a swap has a barrier after the blocks were staged, and one at its end.
TEST_F(DeviceOfHosts, DoesTheBarriersOfTheirShuffles) {
  const Hosts hosts(2);
  std::vector<std::uint64_t> releases_of;
  constexpr int kMore = 50;
  for (const int shuffles : {10, 10 + kMore}) {
    const FakeDevice device;
    const JobOnHosts job(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "kv_barrier", std::to_string(shuffles)},
                         {"SHMEM_GBA=require", "GBA_DEVICE=" + device.path()});
    ASSERT_THAT(job.codes(kLimit), Each(0)) << job.output();
    EXPECT_TRUE(job.all_say("all blocks are right")) << job.output();
    releases_of.push_back(releases(device));
  }
  EXPECT_GE(releases_of[1], releases_of[0] + std::uint64_t{2} * kMore);
}

/// The votes at the end of shuffles go by messages from then on, and no block is lost.
TEST_F(DeviceOfHosts, IsKilledDuringTheirShufflesAndNoBlockIsLost) {
  const Hosts hosts(2);
  FakeDevice device;
  const JobOnHosts job(hosts, {0, 1, 1}, {test_program("shmem_pes"), "kv_barrier", "3000"},
                       {"SHMEM_GBA=require", "GBA_DEVICE=" + device.path(), "SHMEM_BARRIER_TIMEOUT=60"});
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (releases(device) < 200 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  device.process().signal(SIGKILL);
  ASSERT_THAT(job.codes(kLimit), Each(0)) << job.output();
  EXPECT_TRUE(job.all_say("all blocks are right")) << job.output();
}

/// Hosts h0 and h1 are on one switch, h2 and h3 on another.
class DevicesOfHosts : public DeviceOfHosts {
 protected:
  static std::vector<Port> ports(const FakeDevice& a, const FakeDevice& b) {
    return {{&a, "a"}, {&a, "a"}, {&b, "b"}, {&b, "b"}};
  }
};

TEST_F(DevicesOfHosts, DoTheirBarriersTogether) {
  const Hosts hosts(4);
  const FakeDevice a;
  const FakeDevice b;
  constexpr std::uint64_t kRounds = 200;
  const BarriersOnHosts job(hosts, {0, 1, 2, 3}, ports(a, b), kRounds);
  job.expect_good_end();
  EXPECT_GE(job.by_device(), 4 * kRounds) << job.output();
  EXPECT_EQ(job.by_software(), 0U) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("its 4 nodes synchronise through it, in 2 groups"));
  for (const FakeDevice* device : {&a, &b}) {
    EXPECT_GE(releases(*device), 2 * kRounds);
  }
}

TEST_F(DevicesOfHosts, LoseNoBarrierWhenOneIsKilledAndThenTheOther) {
  const Hosts hosts(4);
  for (int i = 0; i < repeats(1, 20); ++i) {
    std::array<FakeDevice, 2> devices;
    const BarriersOnHosts job(hosts, {0, 1, 2, 3}, ports(devices[0], devices[1]));
    let_it_go_on(job);
    FakeDevice& first = devices[static_cast<std::size_t>(i % 2)];
    FakeDevice& second = devices[static_cast<std::size_t>(1 - i % 2)];
    first.process().signal(SIGKILL);
    ASSERT_TRUE(job.goes_on(5)) << job.output();
    const auto before = releases(second);
    ASSERT_TRUE(job.goes_on(30)) << job.output();
    EXPECT_GE(releases(second), before + 30) << "the other switch is not used any more";
    second.process().signal(SIGKILL);
    ASSERT_TRUE(job.goes_on(30)) << job.output();
    job.end();
    EXPECT_GE(job.by_device(), 4 * 20U) << job.output();
    EXPECT_THAT(job.output(), HasSubstr("2 of its 4 nodes synchronise by messages after"));
  }
}

}  // namespace
