// SPDX-License-Identifier: Apache-2.0
// Jobs without a launcher: the PEs find each other over TCP.
#include <signal.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/fd.hpp"
#include "tests/support/network.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using Environment = std::vector<std::string>;

constexpr Seconds kLimit{120};

/// PEs that are started one by one, as from separate shells.
class Shells {
 public:
  void start(const std::vector<std::string>& command, Environment environment) {
    environment.emplace_back("SHMEM_GBA=off");
    pes_.push_back(std::make_unique<Process>(command, environment));
  }
  [[nodiscard]] Process& pe(std::size_t pe) const { return *pes_[pe]; }
  [[nodiscard]] std::size_t size() const { return pes_.size(); }
  /// The exit code of each PE in the order of their start; minus the number of a signal; 1000 for a PE that still runs.
  std::vector<int> codes() {
    std::vector<int> codes;
    for (const Outcome& end : ends()) {
      codes.push_back(end.exit.signal != 0 ? -end.exit.signal : end.exit.code);
    }
    return codes;
  }
  std::vector<Outcome> ends() {
    std::vector<Outcome> ends;
    for (const auto& pe : pes_) {
      const auto exit = pe->wait(kLimit);
      ends.push_back({exit.value_or(Exit{1000}), pe->output()});
    }
    return ends;
  }
  [[nodiscard]] std::string output() const {
    std::string text;
    for (const auto& pe : pes_) {
      text += pe->output();
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Process>> pes_;
};

/// PEs that end with this code and output.
auto ended(int code, const Matcher<const std::string&>& output) {
  return AllOf(Field(&Outcome::exit, Field(&Exit::code, code)), Field(&Outcome::output, output));
}

std::string bootstrap_timeout(int seconds) {
  return "SHMEM_BOOTSTRAP_TIMEOUT=" + std::to_string(seconds);
}

/// Jobs with a unique id that is passed in a file.
class UniqueId : public testing::Test {
 protected:
  void start(int rank, int size, const std::string& action, Environment environment = {}) {
    if (environment.empty()) {
      environment = {"SHMEM_UID_SOCK_IFNAME=lo"};
    }
    shells_.start({test_program("shmem_pes"), "uid", file(), std::to_string(rank), std::to_string(size), action},
                  environment);
  }
  void start_all(int size, const std::string& action, const Environment& environment = {}) {
    for (int rank = 0; rank < size; ++rank) {
      start(rank, size, action, environment);
    }
  }
  /// Before the next job.
  void remove_last() {
    shells_ = {};
    std::filesystem::remove(file());
  }
  [[nodiscard]] std::string file() const { return dir_.file("id"); }

  Shells shells_;

 private:
  TempDir dir_;
};

struct Place {
  const char* variable;
  const char* session;  // the address that it stands for
};
class UniqueIdAt : public UniqueId, public testing::WithParamInterface<Place> {};

TEST_P(UniqueIdAt, StartsAJob) {
  if (wants_missing_ipv6(GetParam().session)) {
    GTEST_SKIP() << "no IPv6 loopback on this machine";
  }
  start_all(3, "hello", {GetParam().variable});
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0, 0, 0})) << shells_.output();
  EXPECT_THAT(shells_.output(), AllOf(HasSubstr("PE 0 of 3: hello from 2"), HasSubstr("PE 2 of 3: hello from 1")));
}

INSTANTIATE_TEST_SUITE_P(Places, UniqueIdAt,
                         Values(Place{"SHMEM_UID_SESSION_ID=127.0.0.1:0", "127.0.0.1:0"},
                                Place{"SHMEM_UID_SESSION_ID=[::1]:0", "[::1]:0"},
                                Place{"SHMEM_UID_SESSION_ID=localhost:0", "localhost:0"},
                                Place{"SHMEM_UID_SOCK_IFNAME=lo:inet6", "[::1]:0"},
                                Place{"SHMEM_BOOTSTRAP=auto", "127.0.0.1:0"}));

TEST_F(UniqueId, CanBeMadeByAnyPe) {
  start_all(3, "hello-by-last");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0, 0, 0})) << shells_.output();
}

TEST_F(UniqueId, StartsAJobOfOne) {
  start_all(1, "hello");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0})) << shells_.output();
}

TEST_F(UniqueId, StartsOneJobAfterAnotherAndNoneInAnother) {
  start_all(3, "again");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0, 0, 0})) << shells_.output();
  EXPECT_THAT(shells_.output(), AllOf(HasSubstr("PE 1 of 3: hello"), HasSubstr("PE 1 of 2: hello")));
}

TEST_F(UniqueId, RefusesWrongArgumentsWithTheirValue) {
  start_all(1, "wrong");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0})) << shells_.output();
}

TEST_F(UniqueId, LeavesNoPeHangingWhenOneIsKilledAtAnyMoment) {
  std::mt19937 random(1);
  for (int time = 0; time < repeats(10, 200) && !HasFailure(); ++time) {
    const auto victim = random() % 4;
    const std::chrono::microseconds moment(random() % 40'000);
    const auto run = [&](int seconds) {
      remove_last();
      start_all(4, "hello", {"SHMEM_UID_SOCK_IFNAME=lo", bootstrap_timeout(seconds)});
      while (!std::filesystem::exists(file())) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(moment);
      shells_.pe(victim).signal(SIGKILL);
      EXPECT_THAT(shells_.codes(), Each(Ne(1000))) << "a PE hangs: " << shells_.output();
      return shells_.ends();
    };
    // A PE that never heard from the server cannot name the server's PE.
    const auto names_it = AnyOf(ContainsRegex("PEs? ([0-9], )*" + std::to_string(victim)),
                                HasSubstr("the process that the PEs connect to"), HasSubstr("cannot reach the job"));
    const auto is_killed = Field(&Outcome::exit, Field(&Exit::signal, SIGKILL));
    const auto is_well = Field(&Outcome::exit, Property(&Exit::clean, true));
    const auto all_end =
        AnyOf(Not(Contains(is_killed)), Each(AnyOf(is_killed, is_well, Field(&Outcome::output, names_it))));
    const auto ends = with_timeouts(run, Matches(all_end));
    EXPECT_THAT(ends, all_end) << "PE " << victim << " was killed\n" << shells_.output();
  }
}

TEST_F(UniqueId, IsNeverPrinted) {
  start_all(2, "hello", {"SHMEM_UID_SESSION_ID=127.0.0.1:0", "SHMEM_DEBUG=1", "SHMEM_INFO=1"});
  ASSERT_EQ(shells_.codes(), (std::vector<int>{0, 0})) << shells_.output();
  std::ifstream stream(file(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(bytes.size(), 128U);
  const std::string secret = bytes.substr(4 + 28, 16);
  std::string hexadecimal;
  for (const char byte : secret) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    hexadecimal += digits.data();
  }
  EXPECT_NE(hexadecimal, std::string(32, '0'));
  EXPECT_THAT(shells_.output(), HasSubstr("127.0.0.1"));  // the address is printed, the id is not
  EXPECT_THAT(shells_.output(), AllOf(Not(HasSubstr(secret.substr(0, 4))), Not(HasSubstr(hexadecimal.substr(0, 8)))));
}

TEST_F(UniqueId, EndsTheJobOnAllPesWithTheStatusOfGlobalExit) {
  start_all(4, "exit");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{7, 7, 7, 7})) << shells_.output();
  EXPECT_THAT(shells_.pe(3).output(), HasSubstr("PE 1 called shmem_global_exit(7)"));
}

TEST_F(UniqueId, EndsTheJobOnAllPesWhenTheServingPeEndsIt) {
  start_all(3, "exit-by-server");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{7, 7, 7})) << shells_.output();
}

TEST_F(UniqueId, NamesThePeThatDied) {
  start_all(3, "die");
  shells_.codes();
  for (const std::size_t pe : {0U, 2U}) {
    EXPECT_THAT(shells_.pe(pe).output(), HasSubstr("PE 1")) << pe;
  }
  EXPECT_THAT(shells_.pe(0).output(), Not(HasSubstr("barrier: 0")));
}

TEST_F(UniqueId, NamesThePeThatDiedWhileOthersWaitForAWord) {
  start_all(3, "die-word");
  EXPECT_THAT(shells_.codes(), ElementsAre(Gt(0), -SIGKILL, Gt(0)));
  for (const std::size_t pe : {0U, 2U}) {
    EXPECT_THAT(shells_.pe(pe).output(), AllOf(HasSubstr("shmem_signal_wait_until: the wait"), HasSubstr("PE 1"),
                                               HasSubstr("there is 0"), Not(HasSubstr("word: "))));
  }
}

TEST_F(UniqueId, NamesThePeThatDiedEvenIfItWasTheServer) {
  start_all(3, "die-server");
  shells_.codes();
  for (const std::size_t pe : {1U, 2U}) {
    EXPECT_THAT(shells_.pe(pe).output(), HasSubstr("PE 0")) << pe;
  }
}

TEST_F(UniqueId, NamesThePeThatDiedWhileTheCoresOfOthersWaitForIt) {
  for (const char* action : {"die-kernel", "die-kernel-list"}) {
    start_all(3, action);
    shells_.codes();
    for (const std::size_t pe : {0U, 2U}) {
      EXPECT_THAT(shells_.pe(pe).output(), AllOf(HasSubstr("PE 1"), Not(HasSubstr("kernel: 0")))) << pe;
    }
    remove_last();
  }
}

TEST_F(UniqueId, NamesMissingPes) {
  const auto run = [this](int seconds) {
    remove_last();
    for (const int rank : {0, 2}) {
      start(rank, 4, "hello", {"SHMEM_UID_SOCK_IFNAME=lo", bootstrap_timeout(seconds)});
    }
    return shells_.ends();
  };
  const auto named =
      Each(ended(3, AllOf(HasSubstr("gave -110"), ContainsRegex("PEs 1, 3 did not arrive within [0-9]+ s"))));
  const auto ends = with_timeouts(run, Matches(named));
  EXPECT_THAT(ends, named) << shells_.output();
}

TEST_F(UniqueId, RefusesAnotherNumberOfPesOnAllOfThem) {
  start(0, 3, "hello");
  start(1, 3, "hello");
  start(2, 4, "hello");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{3, 3, 3})) << shells_.output();
  for (std::size_t pe = 0; pe < 3; ++pe) {
    EXPECT_THAT(shells_.pe(pe).output(),
                AllOf(HasSubstr("PE 2 (host "), HasSubstr("was told that the job has 4 PEs, PE 0 that it has 3")));
  }
}

TEST_F(UniqueId, RefusesASecondPeWithTheSameNumber) {
  start(0, 3, "hello");
  start(1, 3, "hello");
  start(1, 3, "hello");
  EXPECT_EQ(shells_.codes(), (std::vector<int>{3, 3, 3})) << shells_.output();
  for (std::size_t pe = 0; pe < 3; ++pe) {
    EXPECT_THAT(shells_.pe(pe).output(),
                AllOf(HasSubstr("PE 1 joined twice"), HasSubstr("process " + std::to_string(shells_.pe(2).pid()))));
  }
}

/// Jobs whose PEs are configured by their environment.
class Session : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (wants_missing_ipv6(GetParam())) {
      GTEST_SKIP() << "no IPv6 loopback on this machine";
    }
  }
  Environment environment(int rank, int size) const {
    return {"SHMEM_BOOTSTRAP=uid", "SHMEM_UID_SESSION_ID=" + session_, "SHMEM_UID_RANK=" + std::to_string(rank),
            "SHMEM_UID_SIZE=" + std::to_string(size)};
  }
  void start(int rank, int size, const Environment& more = {},
             const std::vector<std::string>& command = {"shmem_pes", "api"}) {
    auto all = environment(rank, size);
    all.insert(all.end(), more.begin(), more.end());
    shells_.start({test_program(command[0]), command[1]}, all);
  }

  Shells shells_;
  std::string session_ = std::string(GetParam()) + ":" + std::to_string(free_loopback_port());
};

TEST_P(Session, StartsTheProgramsThatOshrunStarts) {
  for (int rank = 2; rank >= 0; --rank) {
    start(rank, 3, {"SHMEM_UID_SECRET=quite-a-secret", "SHMEM_DEBUG=1"});
  }
  EXPECT_EQ(shells_.codes(), (std::vector<int>{0, 0, 0})) << shells_.output();
  EXPECT_THAT(shells_.output(), Not(HasSubstr("quite-a-secret")));
}

TEST_P(Session, CanBeUsedAgainAtOnce) {
  for (int time = 0; time < 3; ++time) {
    Shells shells;
    for (int rank = 0; rank < 2; ++rank) {
      shells.start({test_program("openshmem_c_pes"), "c11"}, environment(rank, 2));
    }
    EXPECT_EQ(shells.codes(), (std::vector<int>{0, 0})) << shells.output();
  }
}

TEST_P(Session, RefusesPesWithAnotherSecret) {
  const auto run = [this](int seconds) {
    shells_ = {};
    start(0, 2, {"SHMEM_UID_SECRET=one", bootstrap_timeout(seconds)});
    start(1, 2, {"SHMEM_UID_SECRET=another", bootstrap_timeout(seconds)});
    return shells_.ends();
  };
  const auto refused = ElementsAre(
      ended(1, AllOf(ContainsRegex("PE 1 did not arrive within [0-9]+ s"), HasSubstr("refused meanwhile"),
                     HasSubstr("it does not have the secret of this job"))),
      ended(1,
            AllOf(HasSubstr("refused by the job at " + session_), HasSubstr("does not have the secret of that job"))));
  const auto ends = with_timeouts(run, Matches(refused));
  EXPECT_THAT(ends, refused) << shells_.output();
}

TEST_P(Session, ReportsDifferentSizesOfPes) {
  const auto run = [this](int seconds) {
    shells_ = {};
    start(0, 2, {"SHMEM_UID_SECRET=one", bootstrap_timeout(seconds)});
    start(1, 3, {"SHMEM_UID_SECRET=one", bootstrap_timeout(seconds)});
    return shells_.ends();
  };
  const auto reported =
      ElementsAre(ended(1, HasSubstr("and was told of 3 PEs, not 2")),
                  ended(1, HasSubstr("that job has 2 PEs, and this process was told of 3: SHMEM_UID_SIZE")));
  const auto ends = with_timeouts(run, Matches(reported));
  EXPECT_THAT(ends, reported) << shells_.output();
}

TEST_P(Session, ReportsThatNoPeListens) {
  start(1, 2, {"SHMEM_BOOTSTRAP_TIMEOUT=0.3"});
  EXPECT_EQ(shells_.codes(), (std::vector<int>{1})) << shells_.output();
  EXPECT_THAT(shells_.output(), AllOf(HasSubstr("cannot reach the job at " + session_), HasSubstr("is PE 0 running")));
}

INSTANTIATE_TEST_SUITE_P(Families, Session, Values("127.0.0.1", "[::1]"),
                         [](const auto& test) { return test.index == 0 ? "IPv4" : "IPv6"; });

}  // namespace
