// SPDX-License-Identifier: Apache-2.0
// A PE that computes and makes no calls: other PEs on other nodes access its memory in order, and it ends with the job.
// By requests that the PE's progress thread serves, and by UCX's own one-sided operations.
#include <signal.h>

#include "tests/integration/net/job_on_hosts.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr Seconds kLimit{600};

struct Way {
  const char* name;
  const char* transports;
  JobOnHosts::Environment environment;
};

// With another transport than TCP too, the operations are UCX's own, as with an adapter.
const Way kWays[] = {{"Requests", "(tcp)", {}},
                     {"Direct", "(tcp, cma)", {"UCX_TLS=tcp,cma", "UCX_WARN_UNUSED_ENV_VARS=n"}}};

class ComputingPe : public OnHosts, public testing::WithParamInterface<Way> {
 protected:
  static JobOnHosts::Environment environment(const JobOnHosts::Environment& more = {}) {
    JobOnHosts::Environment all{"SHMEM_INFO=1"};
    all.insert(all.end(), GetParam().environment.begin(), GetParam().environment.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::vector<int>> places() {
    if (repeats(0, 1) == 0) {
      return {{0, 0, 1, 1}};
    }
    return {{0, 0, 1, 1}, {0, 1, 2}, {0, 1, 0}, {0, 1, 2, 3}};
  }
  void expect_clean(const std::vector<std::string>& command) {
    const Hosts hosts(4);
    for (const auto& host_of : places()) {
      const JobOnHosts job(hosts, host_of, command, environment());
      EXPECT_THAT(job.codes(kLimit), Each(0)) << job.output();
      EXPECT_THAT(job.pe(0).output(), HasSubstr(GetParam().transports));
    }
  }
};

TEST_P(ComputingPe, IsReachedByEveryOperation) {
  expect_clean({test_program("shmem_pes"), "progress"});
}

TEST_P(ComputingPe, SeesChangesInOrder) {
  expect_clean({test_program("shmem_pes"), "order", std::to_string(repeats(2, 100))});
}

/// The test above needs the progress thread.
TEST_P(ComputingPe, IsNotReachedWithoutTheProgressThread) {
  const Hosts hosts(2);
  // The library's limit, or UCX's, which is as long.
  const auto says_why = ContainsRegex("timed out after [0-9]+ s|did not answer in time");
  const Matcher<const Ended&> expected =
      AllOf(Field(&Ended::codes, Each(AllOf(Ne(0), Ne(1000)))), Field(&Ended::outputs, Contains(says_why)));
  const auto run_for = [&](int seconds) {
    const JobOnHosts job(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "progress"},
                         environment({"SHMEM_PROGRESS_THREAD=0", "SHMEM_NETWORK_TIMEOUT=" + std::to_string(seconds)}));
    return ended(job);
  };
  EXPECT_THAT(with_timeouts(run_for, [&](const Ended& job) { return expected.Matches(job); }), expected);
}

TEST_P(ComputingPe, EndsWhenAnotherPeEndsTheJob) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "progress", "exit"}, environment());
  EXPECT_THAT(job.codes(kLimit), Each(7)) << job.output();
}

TEST_P(ComputingPe, EndsWhenAPeOfAnotherNodeIsKilled) {
  const Hosts hosts(2);
  const JobOnHosts job(hosts, {0, 0, 1, 1}, {test_program("shmem_pes"), "progress", "wait"}, environment());
  ASSERT_TRUE(job.all_say("is there", kLimit)) << job.output();
  job.pe(3).signal(SIGKILL);
  EXPECT_THAT(job.codes(kLimit), Each(AllOf(Ne(0), Ne(1000)))) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("PE 3"));
}

INSTANTIATE_TEST_SUITE_P(Ways, ComputingPe, ValuesIn(kWays),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
