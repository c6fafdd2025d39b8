// SPDX-License-Identifier: Apache-2.0
// This process's UCX worker: its sleeps, its settings, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "shmem/bootstrap/single.hpp"
#include "shmem/net/ucx/wait_policy.hpp"
#include "tests/unit/shmem/counted_yields.hpp"
#include "tests/unit/shmem/network_processes.hpp"
#include "wire/ucx/worker.hpp"

namespace shmem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using UcxWorkerTest = testing::NetworkTest;
using wire::load_ucx;
using wire::UcxCalls;
using wire::UcxSleepers;
using wire::UcxWorker;

bool is_signalled(const UcxSleepers& sleepers) {
  pollfd event{sleepers.event(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

TEST(UcxSleepers, AreWokenOnlyIfThereAreAny) {
  UcxSleepers sleepers;
  sleepers.wake();
  EXPECT_FALSE(is_signalled(sleepers));
  sleepers.enter();
  EXPECT_FALSE(is_signalled(sleepers));
  sleepers.wake();
  EXPECT_TRUE(is_signalled(sleepers));
  sleepers.leave();
  sleepers.enter();
  EXPECT_FALSE(is_signalled(sleepers)) << "an old signal ends a new sleep";
}

TEST(UcxSleepers, DoNotConsumeTheSignalOfAnother) {
  UcxSleepers sleepers;
  sleepers.enter();
  sleepers.wake();
  sleepers.enter();  // a second one, while the first has not seen the signal yet
  EXPECT_TRUE(is_signalled(sleepers));
  sleepers.leave();
  sleepers.enter();
  EXPECT_TRUE(is_signalled(sleepers));
}

TEST_F(UcxWorkerTest, WakesAThreadWhoseMessageAnotherThreadProgresses) {
  UcxCalls calls = load_ucx("libucp.so.0").value();
  calls.worker_progress = [](ucp_worker_h) -> unsigned { return 1; };
  calls.worker_arm = [](ucp_worker_h) { return UCS_OK; };
  const auto worker = UcxWorker::create(calls, 1).value();
  constexpr std::chrono::seconds kLimit{20};
  std::atomic<bool> done{false};
  std::atomic<bool> looked{false};
  std::jthread other([&] {
    while (!looked) {
      std::this_thread::yield();
    }
    done = true;
    worker->progress();
  });
  const auto start = Clock::now();
  while (!done && Clock::now() - start < kLimit) {
    // The look before the sleep is the last one that finds nothing.
    worker->sleep_until([&] { return done.load() || looked.exchange(true); }, kLimit);
  }
  EXPECT_LT(Clock::now() - start, kLimit);
}

/// A PE of another container of this machine may wait for this very processor, with what is awaited here.
TEST_F(UcxWorkerTest, GivesTheProcessorUpWhileAWaitSpins) {
  const auto worker = UcxWorker::create(load_ucx("libucp.so.0").value(), 1).value();
  const SingleBootstrap world;
  NetworkSettings settings;
  settings.limit = std::chrono::seconds{20};
  settings.policy = {.spins = std::numeric_limits<unsigned>::max()};
  UcxWaitPolicy waits(world, *worker, settings);
  const unsigned enough = shmem_test::yields_of_thread + 10;
  EXPECT_EQ(waits.wait([&] { return shmem_test::yields_of_thread >= enough; }, nullptr), std::errc{});
}

std::vector<std::string>& settings_made() {
  static std::vector<std::string> settings;
  return settings;
}

TEST_F(UcxWorkerTest, KeepsMessagesToAPeOnOnePath) {
  UcxCalls calls = load_ucx("libucp.so.0").value();
  calls.config_modify = [](ucp_config_t*, const char* name, const char* value) {
    settings_made().push_back(std::string(name) + "=" + value);
    return UCS_OK;
  };
  ASSERT_TRUE(UcxWorker::create(calls, 1));
  EXPECT_THAT(settings_made(), Contains("MAX_EAGER_RAILS=1"));
}

/// A UCX that claims to have an adapter, as a node with InfiniBand has; without TCP if it is told to.
UcxCalls with_an_adapter() {
  UcxCalls calls = load_ucx("libucp.so.0").value();
  settings_made().clear();
  calls.config_modify = [](ucp_config_t*, const char* name, const char* value) {
    settings_made().push_back(std::string(name) + "=" + value);
    return UCS_OK;
  };
  calls.context_print_info = [](const ucp_context_h, FILE* stream) {
    std::fputs("#  resource 0 : md 0 dev 0 flags -- rc_mlx5/mlx5_0:1\n", stream);
    if (settings_made().empty() || settings_made().back() != "TLS=^sm,tcp") {
      std::fputs("#  resource 1 : md 1 dev 1 flags -- tcp/eth0\n", stream);
    }
  };
  return calls;
}

/// Whether libshmem has this UCX execute one-sided operations.
constexpr bool kHasOwnOperations = UCP_API_MINOR < 23;

TEST_F(UcxWorkerTest, LeavesTcpOutIfRdmaIsRequired) {
  const UcxCalls calls = with_an_adapter();
  const auto any = UcxWorker::create(calls, 1);
  ASSERT_TRUE(any) << any.error().text;
  EXPECT_EQ((*any)->transports(), "rc_mlx5, tcp");
  EXPECT_THAT(settings_made(), Not(Contains("TLS=^sm,tcp")));
  const auto rdma = UcxWorker::create(calls, 1, false, true);
  ASSERT_TRUE(rdma) << rdma.error().text;
  EXPECT_EQ((*rdma)->transports(), "rc_mlx5");
  EXPECT_EQ((*rdma)->one_sided(), kHasOwnOperations);
  EXPECT_THAT(settings_made(), Contains("TLS=^sm,tcp"));
}

/// The version 1.MINOR that this one claims to be, if the checks at its start accept that.
template <unsigned kMinor>
UcxCalls as_version(UcxCalls calls) {
  calls.get_version = [](unsigned* major, unsigned* minor, unsigned* release) {
    *major = 1;
    *minor = kMinor;
    *release = 1;
  };
  return calls;
}

/// network_test.cpp runs the operations themselves. A UCX that is newer cannot claim to be 1.18.
TEST_F(UcxWorkerTest, UsesTheOlderImplementationOfUcxsOperations) {
  if (UCP_API_MINOR > 18) {
    GTEST_SKIP() << "UCX 1." << UCP_API_MINOR;
  }
  const auto worker = UcxWorker::create(as_version<18>(with_an_adapter()), 1);
  ASSERT_TRUE(worker);
  EXPECT_TRUE((*worker)->one_sided());
  EXPECT_THAT(settings_made(), Contains("PROTO_ENABLE=n"));
}

TEST_F(UcxWorkerTest, RefusesWhatNewerVersionsCannotDo) {
  if (UCP_API_MINOR > 18) {
    GTEST_SKIP() << "UCX 1." << UCP_API_MINOR;
  }
  ::setenv("UCX_PROTO_ENABLE", "y", 1);
  const auto atomics = UcxWorker::create(as_version<18>(with_an_adapter()), 1);
  ::unsetenv("UCX_PROTO_ENABLE");
  ASSERT_FALSE(atomics);
  EXPECT_EQ(atomics.error().code, std::errc::invalid_argument);
  EXPECT_THAT(atomics.error().text, HasSubstr("UCX_PROTO_ENABLE=y makes this version of UCX cancel atomic operations"));
  ::setenv("UCX_RNDV_SCHEME", "put_zcopy", 1);
  const auto with_adapter = UcxWorker::create(as_version<18>(with_an_adapter()), 1);
  const auto over_tcp = UcxWorker::create(as_version<18>(load_ucx("libucp.so.0").value()), 1, true);
  const auto by_requests = UcxWorker::create(as_version<18>(load_ucx("libucp.so.0").value()), 1, false);
  ::unsetenv("UCX_RNDV_SCHEME");
  EXPECT_TRUE(with_adapter) << with_adapter.error().text;
  EXPECT_TRUE(by_requests) << by_requests.error().text;
  ASSERT_FALSE(over_tcp);
  EXPECT_THAT(over_tcp.error().text, HasSubstr("UCX_RNDV_SCHEME=put_zcopy lets this version of UCX crash"));
}

TEST_F(UcxWorkerTest, HasNoOperationsOfItsOwnInVersionsThatLackSome) {
  const auto worker = UcxWorker::create(as_version<23>(with_an_adapter()), 1);
  ASSERT_TRUE(worker) << worker.error().text;
  EXPECT_FALSE((*worker)->one_sided());
  EXPECT_EQ((*worker)->transports(), "rc_mlx5, tcp");
}

TEST_F(UcxWorkerTest, DoesNotFallBackToTcpIfRdmaIsRequired) {
  const auto refused = UcxWorker::create(load_ucx("libucp.so.0").value(), 1, false, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, std::errc::network_down);
  EXPECT_THAT(refused.error().text, HasSubstr("SHMEM_NETWORK_REQUIRE=rdma, but UCX "));
  EXPECT_THAT(refused.error().text, HasSubstr("would use tcp between nodes"));
}

TEST_F(UcxWorkerTest, RefusesTheUsersChoiceOfTcpIfRdmaIsRequired) {
  const UcxCalls calls = with_an_adapter();
  ::setenv("UCX_TLS", "tcp,self", 1);
  const auto refused = UcxWorker::create(calls, 1, false, true);
  ::unsetenv("UCX_TLS");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("with UCX_TLS=tcp,self UCX "));
  EXPECT_THAT(refused.error().text, HasSubstr("it has rc_mlx5, tcp"));
}

TEST_F(UcxWorkerTest, RefusesSettingsThatLetMessagesOvertakeEachOther) {
  const UcxCalls calls = load_ucx("libucp.so.0").value();
  for (const char* variable : {"UCX_MAX_EAGER_RAILS", "UCX_MAX_EAGER_LANES"}) {
    ::setenv(variable, "2", 1);
    const auto refused = UcxWorker::create(calls, 1);
    const auto by_adapter = UcxWorker::create(calls, 1, true);
    ::setenv(variable, "1", 1);
    const auto allowed = UcxWorker::create(calls, 1);
    ::unsetenv(variable);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr(std::string(variable) + "=2"));
    EXPECT_EQ(by_adapter.has_value(), kHasOwnOperations);
    EXPECT_TRUE(allowed) << allowed.error().text;
  }
}

TEST_F(UcxWorkerTest, RefusesAtomicOperationsOfTheAdapter) {
  if (!kHasOwnOperations) {
    GTEST_SKIP() << "UCX 1." << UCP_API_MINOR;
  }
  const UcxCalls calls = with_an_adapter();
  for (const char* mode : {"device", "guess"}) {
    ::setenv("UCX_ATOMIC_MODE", mode, 1);
    const auto refused = UcxWorker::create(calls, 1);
    const auto by_requests = UcxWorker::create(load_ucx("libucp.so.0").value(), 1);
    ::unsetenv("UCX_ATOMIC_MODE");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr(std::string("UCX_ATOMIC_MODE=") + mode + " lets the adapter change"));
    EXPECT_THAT(refused.error().text, HasSubstr("set it to cpu"));
    EXPECT_TRUE(by_requests) << by_requests.error().text;
  }
  ::setenv("UCX_ATOMIC_MODE", "cpu", 1);
  const auto allowed = UcxWorker::create(calls, 1);
  ::unsetenv("UCX_ATOMIC_MODE");
  EXPECT_TRUE(allowed) << allowed.error().text;
}

TEST_F(UcxWorkerTest, SaysWhichUcxToInstallIfThisOneHasNoThreads) {
  UcxCalls calls = load_ucx("libucp.so.0").value();
  calls.worker_query = [](ucp_worker_h, ucp_worker_attr_t* given) {
    given->thread_mode = UCS_THREAD_MODE_SINGLE;
    return UCS_OK;
  };
  const auto worker = UcxWorker::create(calls, 1);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().code, std::errc::not_supported);
  EXPECT_THAT(worker.error().text, HasSubstr("--enable-mt"));
  // Not what the program cannot help: it may have asked for SHMEM_THREAD_SINGLE.
  EXPECT_THAT(worker.error().text, Not(HasSubstr("SHMEM_")));
}

}  // namespace
}  // namespace shmem
