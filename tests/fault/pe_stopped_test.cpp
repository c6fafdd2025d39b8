// SPDX-License-Identifier: Apache-2.0
// A PE is stopped and others wait for it: a warning names it, whatever the call.
#include <signal.h>

#include <optional>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr Seconds kLimit{120};

struct Wait {
  const char* name;
  const char* phase;
  bool nodes;  // each PE is on a node of its own
  bool device;
  const char* warning;
};

class StoppedPe : public testing::TestWithParam<Wait> {
 protected:
  static std::vector<std::string> job_of(const Wait& wait, const std::string& gba) {
    const std::string line =
        wait.nodes ? R"(export SHMEM_HOST_ID=node$OSHRUN_RANK; exec "$0" "$@")" : R"(exec "$0" "$@")";
    return oshrun(2, gba, {"/bin/sh", "-c", line, test_program("shmem_pes"), "phase", wait.phase});
  }

  /// What the job prints until PE 1 is named. PEs warn after this many fifths of a second.
  static std::string output_of(const Wait& wait, int fifths) {
    std::optional<FakeDevice> device;
    if (wait.device) {
      device.emplace();
    }
    Process job(job_of(wait, wait.device ? device->path() : "off"),
                {"SHMEM_BARRIER_WARN=" + std::to_string(0.2 * fifths)});
    if (!job.wait_for_output("PE 0 is in the job", kLimit) || !job.wait_for_output("PE 1 is in the job", kLimit)) {
      return job.output();
    }
    const pid_t pid = pid_of(job.output(), 1);
    // It may be stopped at a moment when no PE waits for it: then it goes on, and is stopped again.
    bool warned = false;
    for (int i = 0; i < 10 && !warned; ++i) {
      EXPECT_EQ(::kill(pid, SIGSTOP), 0);
      warned = job.wait_for_output(wait.warning, Seconds{3.0 * fifths});
      EXPECT_EQ(::kill(pid, SIGCONT), 0);
      warned = warned || job.wait_for_output(wait.warning, Seconds{0.1 * fifths});
    }
    return job.output();
  }
};

TEST_P(StoppedPe, IsNamedByThePesThatWaitForIt) {
  const Wait& wait = GetParam();
  if (wait.nodes && !has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  const Matcher<const std::string&> names_it = AllOf(HasSubstr(wait.warning), Not(HasSubstr("waits for PE 0")));
  EXPECT_THAT(with_timeouts([&](int fifths) { return output_of(wait, fifths); },
                            [&](const std::string& output) { return names_it.Matches(output); }),
              names_it);
}

INSTANTIATE_TEST_SUITE_P(Waits, StoppedPe,
                         Values(Wait{"Barrier", "barrier", false, false, "waits for PE 1 (pid "},
                                Wait{"BarrierOfTheDevice", "barrier", false, true, "waits for PE 1 (pid "},
                                Wait{"BarrierOfNodes", "barrier", true, false, "waits for PE 1 (on "},
                                Wait{"BarrierOfNodesThroughTheDevice", "barrier", true, true, "waits for PE 1 (on "},
                                Wait{"QuietOfNodes", "put", true, false, "waits for PE 1 (on "},
                                Wait{"Sum", "sum", false, false, "waits for PE 1 (pid "},
                                Wait{"SumOfNodes", "sum", true, false, "waits for PE 1 (on "},
                                Wait{"Lock", "lock", false, false, "there is no answer from PE 1"}),
                         [](const auto& test) { return test.param.name; });

// With `tcp` alone requests to a PE are in order without a fence. With another transport too the operations are UCX's
// own, as with an adapter: over TCP, which acknowledges them.
TEST(StoppedPeOfNodes, DelaysNoSignalToAnotherPe) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  const auto job = run_pes(3, "off", on_nodes("/ 1", {"shmem_pes", "signal"}),
                           {"UCX_TLS=tcp,cma", "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("signalled\n"));
}

}  // namespace
