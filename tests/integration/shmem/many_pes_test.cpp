// SPDX-License-Identifier: Apache-2.0
// Many more PEs than processors: waiting PEs must yield the processor.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/pe.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;

std::string reasons_in(const std::string& output) {
  std::string reasons;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    reasons += line.starts_with("reason: ") ? line + '\n' : "";
  }
  return reasons;
}

void barriers(int pes, const char* gba, int rounds) {
  const auto job = run_pes(pes, gba, {"barrier_pes", std::to_string(rounds)}, {}, Seconds{900});
  ASSERT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
  const bool by_device = std::string(gba) == "fake";
  EXPECT_GE(sum_of(job.output, by_device ? "by device" : "by software"),
            static_cast<unsigned long long>(pes) * static_cast<unsigned long long>(rounds))
      << reasons_in(job.output) << '\n'
      << job.output.substr(0, 4000);
}

Outcome whole_life(int pes, const char* gba) {
  return run_pes(pes, gba, {"shmem_pes", "whole_life", "10"}, {}, Seconds{900});
}

TEST(ManyPes, MakeEveryKindOfCallWithTheDevice) {
  const auto job = whole_life(repeats(64, 708), "fake");
  EXPECT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
}
TEST(ManyPes, MakeEveryKindOfCallInSoftware) {
  const auto job = whole_life(repeats(64, 708), "off");
  EXPECT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
}

// Memory per PE that grows with the number of PEs grows with its square in the job, which shows already at 128 PEs.
TEST(ManyPes, NeedLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
  constexpr int kPes = 128;
  constexpr unsigned long long kMost = 512;
  unsigned long long all = 0;
  const auto job = whole_life(kPes, "off");
  ASSERT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
  for (int pe = 0; pe < kPes; ++pe) {
    const std::string of_pe = "PE " + std::to_string(pe) + ": private kB";
    const auto own = sum_of(job.output, of_pe);
    const auto tables = sum_of(job.output, of_pe + " \\d+, page tables kB");
    EXPECT_GT(own, 0U) << job.output.substr(0, 4000);
    EXPECT_GT(tables, 0U);
    // One that waits for long beside other programs uses further pages of the node's memory, before others do.
    EXPECT_LE(own + tables, 2 * kMost) << "PE " << pe << ": " << own << " + " << tables;
    all += own + tables;
  }
  EXPECT_LE(all / kPes, kMost);
}

/// What shmem_init takes of a PE that waits for no other one: a long wait looks for dead PEs.
struct StartCost {
  unsigned long long faults = 0;  // of pages
  unsigned long long reads = 0;   // of files
};

StartCost start_cost(int pes) {
  const auto job = run_pes(pes, "off", {"shmem_pes", "start_cost"}, {}, Seconds{600});
  EXPECT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
  StartCost least{~0ULL, ~0ULL};
  const auto each = all_matches(job.output, "page faults (\\d+), reads (\\d+)");
  EXPECT_EQ(each.size(), static_cast<std::size_t>(pes));
  for (const auto& one : each) {
    least = {std::min(least.faults, std::stoull(one[1])), std::min(least.reads, std::stoull(one[2]))};
  }
  return least;
}

// What each PE takes more in a larger job grows with the square of its number of PEs in the job.
TEST(ManyPes, StartWithFewPageFaultsAndReads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
  constexpr int kFew = 16;
  constexpr int kMany = 256;
  const StartCost few = start_cost(kFew);
  StartCost many = start_cost(kMany);
  // All may have to wait on a busy machine.
  for (int again = 0; again < 5 && many.reads > few.reads + 2; ++again) {
    many = start_cost(kMany);
  }
  EXPECT_GT(few.faults, 0U);
  EXPECT_LE(many.faults, few.faults + (kMany - kFew) / 8) << few.faults << " with few PEs";
  EXPECT_LE(many.reads, few.reads + 2) << few.reads << " with few PEs";
}

TEST(ManyPes, SixtyFourDoAThousandBarriersThroughTheDevice) {
  barriers(64, "fake", repeats(1000, 100000));
}
TEST(ManyPes, SixtyFourDoAThousandBarriersInSoftware) {
  barriers(64, "off", repeats(1000, 100000));
}
TEST(ManyPes, FillThePortsOfTheSwitch) {
  barriers(708, "fake", repeats(5, 1000));
}

struct Wait {
  const char* name;
  const char* gba;
  std::string algorithm;
  const char* what;
  bool on_nodes = false;  // on two
  int pes = on_nodes ? 4 : 101;
};

class Waits : public testing::TestWithParam<Wait> {};

/// Of each thread of a process, by thread id.
std::map<std::string, long> voluntary_switches(pid_t pid) {
  std::map<std::string, long> switches;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("voluntary_ctxt_switches:")) {
        switches[thread.path().filename()] = std::stol(line.substr(24));
      }
    }
  }
  return switches;
}

std::vector<std::string> late_pes(int pes, const Wait& wait) {
  if (!wait.on_nodes) {
    return oshrun(pes, wait.gba, {test_program("shmem_pes"), "late", wait.what});
  }
  constexpr const char* kLine = R"(export SHMEM_HOST_ID=node$((OSHRUN_RANK % 2)); exec "$0" "$@")";
  return oshrun(pes, wait.gba, {"/bin/sh", "-c", kLine, test_program("shmem_pes"), "late", wait.what});
}

/// The threads that sleep too often, in 2 s.
std::string frequent_switches(const std::vector<pid_t>& pids) {
  constexpr double kMostPerSecond = 20;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::map<std::string, long>> before;
  before.reserve(pids.size());
  for (const pid_t pid : pids) {
    before.push_back(voluntary_switches(pid));
  }
  std::this_thread::sleep_for(Seconds{2});
  std::string bad;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    auto after = voluntary_switches(pids[i]);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    EXPECT_FALSE(before[i].empty()) << "PE " << i + 1;
    for (const auto& [thread, switches] : before[i]) {
      EXPECT_GT(after[thread], 0) << "PE " << i + 1 << ", thread " << thread;
      const long more = after[thread] - switches;
      if (static_cast<double>(more) > kMostPerSecond * passed.count()) {
        bad += "PE " + std::to_string(i + 1) + ", thread " + thread + ": " + std::to_string(more) + "; ";
      }
    }
  }
  return bad;
}

TEST_P(Waits, CostFewContextSwitches) {
  const Wait& wait = GetParam();
  if (wait.on_nodes && !has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  const int pes = wait.pes;
  Process job(late_pes(pes, wait), {"SHMEM_BARRIER_ALGORITHM=" + wait.algorithm});
  std::vector<pid_t> pids;
  pids.reserve(static_cast<std::size_t>(pes));
  for (int pe = 1; pe < pes; ++pe) {
    ASSERT_TRUE(job.wait_for_output("PE " + std::to_string(pe) + " pid", Seconds{120})) << job.output().substr(0, 4000);
    pids.push_back(pid_of(job.output(), pe));
  }
  std::string bad;
  for (int time = 0; time < 20 && (time == 0 || !bad.empty()); ++time) {
    std::this_thread::sleep_for(Seconds{1});  // the PEs' naps are at their longest by then, or some seconds later
    bad = frequent_switches(pids);
  }
  EXPECT_EQ("", bad);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Waits,
                         testing::Values(Wait{"npu_v3", "off", "npu_v3", "barrier"},
                                         Wait{"central_counter", "off", "central_counter", "barrier"},
                                         Wait{"gba", "fake", "gba", "barrier"}, Wait{"signal", "off", "auto", "signal"},
                                         Wait{"barrier_of_two", "off", "auto", "barrier", false, 2},
                                         Wait{"signal_of_two", "off", "auto", "signal", false, 2},
                                         Wait{"barrier_on_nodes", "off", "auto", "barrier", true},
                                         Wait{"gba_on_nodes", "fake", "auto", "barrier", true},
                                         Wait{"signal_on_nodes", "off", "auto", "signal", true}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
