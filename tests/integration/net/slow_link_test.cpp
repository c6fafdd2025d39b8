// SPDX-License-Identifier: Apache-2.0
// Nodes on links with a long delay, with loss or with little bandwidth: the results are those of a good link, and a PE
// that waits for a node leaves its processor to others.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr Seconds kLimit{600};

bool soak() {
  return repeats(1, 2) == 2;
}

const std::pair<const char*, Cable> kCables[] = {
    {"Long", {.delay = std::chrono::milliseconds(5)}},
    {"Lossy", {.loss = 0.02}},
    {"Thin", {.kilobits_per_second = 100'000}},
};

class SlowLink : public OnHosts, public testing::WithParamInterface<std::pair<const char*, Cable>> {
 protected:
  void SetUp() override {
    OnHosts::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (::access("/dev/net/tun", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "there is no /dev/net/tun";
    }
    hosts_ = std::make_unique<Hosts>(2);
    hosts_->use_cable(1, GetParam().second);
  }

  void expect_clean(const std::vector<int>& host_of, const std::vector<std::string>& command,
                    const JobOnHosts::Environment& environment = {}) {
    const JobOnHosts job(*hosts_, host_of, command, environment);
    EXPECT_THAT(job.codes(kLimit), Each(0)) << command.front() << '\n' << job.output();
  }

  std::unique_ptr<Hosts> hosts_;
};

TEST_P(SlowLink, CarriesWhatAGoodLinkCarries) {
  // No wait for a slow link takes as long as these limits.
  const JobOnHosts::Environment limits{"SHMEM_NETWORK_TIMEOUT=200", "SHMEM_BARRIER_TIMEOUT=200"};
  expect_clean({0, 0, 1, 1}, {test_program("shmem_pes"), "net", "hello"}, limits);
  expect_clean({0, 1}, {test_program("shmem_pes"), "net", "large"}, limits);
}

TEST_P(SlowLink, PassesTheOpenShmemPrograms) {
  for (const std::string family : {"setup", "team", "rma", "atomic", "wait", "collective", "threads"}) {
    expect_clean({0, 0, 1, 1}, {test_program("openshmem_c_pes"), family}, {"SHMEM_SYMMETRIC_SIZE=1G"});
    if (!soak()) {
      break;  // the other families take up to minutes
    }
  }
}

TEST_P(SlowLink, ShufflesBlocksOfCaches) {
  for (const char* plan : {"pair", "balanced"}) {
    expect_clean({0, 0, 1, 1},
                 {program("kv_shuffle"), "--check", "--page", "8", "--rounds", "1", "--repeats", "1", "--plan", plan});
    if (!soak()) {
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cables, SlowLink, ValuesIn(kCables),
                         [](const auto& cable) { return std::string(cable.param.first); });

/// The processor time and the sleeps of a process.
struct Use {
  double seconds = 0;
  std::uint64_t sleeps = 0;
};

Use use_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  Use use;
  std::ifstream stat(folder + "/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int field = 0; field < 11; ++field) {
    fields >> skipped;
  }
  double user = 0;
  double system = 0;
  fields >> user >> system;
  use.seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream status(folder + "/status");
  while (std::getline(status, text)) {
    if (text.starts_with("voluntary_ctxt_switches:")) {
      use.sleeps = std::stoull(text.substr(text.find(':') + 1));
    }
  }
  return use;
}

using PesOfNodes = OnHosts;

/// The wait may take minutes, so a PE must not spin; but it must wake up to make progress for other PEs.
TEST_F(PesOfNodes, LeaveTheirProcessorsWhileTheyWaitForANode) {
  const Hosts hosts(2);
  std::vector<const char*> actions{"get", "barrier"};
  if (soak()) {
    actions.insert(actions.end(), {"put", "wait"});
  }
  for (const char* action : actions) {
    const JobOnHosts job(hosts, {0, 1}, {test_program("shmem_pes"), "net", action});
    ASSERT_TRUE(job.all_say("ready")) << job.output();
    job.pe(1).signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // completes transfers that are under way
    const auto begin = std::chrono::steady_clock::now();
    const Use before = use_of(job.pe(0).pid());
    Use after;
    Seconds time;
    do {  // until it has had a processor
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      after = use_of(job.pe(0).pid());
      time = std::chrono::steady_clock::now() - begin;
    } while (after.sleeps == before.sleeps && time < Seconds{60});
    EXPECT_LT(after.seconds - before.seconds, 0.25 * time.count()) << action;
    // A nap takes at least half a millisecond.
    EXPECT_LE(static_cast<double>(after.sleeps - before.sleeps), time.count() / 0.0005 + 10) << action;
    EXPECT_GT(after.sleeps, before.sleeps) << action;
  }
}

}  // namespace
