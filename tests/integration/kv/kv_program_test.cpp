// SPDX-License-Identifier: Apache-2.0
// The program kv_shuffle, as a user starts it.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/kv/kv_nodes.hpp"
#include "tests/integration/kv/kv_program_jobs.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/traces.hpp"

namespace {

using kv_jobs::command;
using kv_jobs::expect_failure;
using kv_jobs::kLimit;
using kv_jobs::shuffle;
using test_support::Outcome;
using test_support::Process;
using test_support::Seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

void expect_pass(const Outcome& outcome, int pes) {
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, EndsWith("kv_shuffle: PASS\n"));
  EXPECT_THAT(outcome.output, HasSubstr("every byte of " + std::to_string(2 * pes) + " caches is correct"));
}

class KvShufflePes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pes, KvShufflePes, testing::Values(1, 2, 3, 4));

TEST_P(KvShufflePes, ChecksEveryByteWithoutADevice) {
  const Outcome outcome = shuffle(GetParam(), "off", {"--check"});
  expect_pass(outcome, GetParam());
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("no GBA: software barriers"), Not(HasSubstr("by the GBA"))));
}

TEST_P(KvShufflePes, ChecksEveryByteWithADevice) {
  const Outcome outcome = shuffle(GetParam(), "fake", {"--check"});
  expect_pass(outcome, GetParam());
  if (GetParam() > 1) {
    EXPECT_THAT(outcome.output, ContainsRegex("device: .*vfio-user.*port [0-9]+, 32 groups of up to 708 members"));
    EXPECT_THAT(outcome.output, ContainsRegex("[1-9][0-9]* by the GBA \\(mean .* us\\)"));
    EXPECT_THAT(outcome.output, ContainsRegex("counters: .*[1-9][0-9]* arrivals, [1-9][0-9]* releases"));
  }
}

TEST(KvShuffle, ChecksEveryByteBetweenNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  for (const char* plan : {"pair", "balanced"}) {
    const auto program = kv_test::on_nodes(
        2, {test_support::program("kv_shuffle"), "--check", "--plan", plan, "--rounds", "2", "--repeats", "1"});
    expect_pass(test_support::run(test_support::oshrun(4, "off", program), {}, kLimit), 4);
  }
}

TEST(KvShuffle, TakesAnyEvenNumberOfCoresAndAnyShape) {
  expect_pass(shuffle(3, "off",
                      {"--check", "--cores", "2", "--heads", "3", "--page", "5", "--head-dim", "7", "--element-size",
                       "4", "--blocks", "33"}),
              3);
  expect_pass(
      shuffle(2, "off",
              {"--check", "--cores", "14", "--page", "16", "--element-size", "2", "--rounds", "30", "--repeats", "1"}),
      2);
}

TEST(KvShuffle, ComparesItsSpeedWithMemcpy) {
  EXPECT_THAT(shuffle(2, "off", {}).output,
              ContainsRegex("speed: .*[0-9.]+ GB/s; memcpy by as many threads [0-9.]+ GB/s \\([0-9]+ %\\)"));
}

TEST(KvShuffle, FinishesWithoutADeviceThatIsKilled) {
  const test_support::TempDir dir;
  // In the middle of the rounds the job waits for a release until the device is killed.
  Process device{{test_support::program("gba-fake-device"), "--socket", dir.file("socket"), "--fault",
                  "delay-release:time=1000s,after=3000,count=always"}};
  ASSERT_TRUE(device.wait_for_output("ready", Seconds{30})) << device.output();
  Process job{command(3, dir.file("socket"), {"--check", "--rounds", "300", "--repeats", "1", "--page", "8"})};
  ASSERT_TRUE(job.wait_for_output("trace:", kLimit)) << job.output();
  device.signal(SIGKILL);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit) << job.output();
  EXPECT_TRUE(exit->clean()) << job.output();
  EXPECT_THAT(job.output(), AllOf(HasSubstr("vfio-user"), HasSubstr("then lost"), HasSubstr("kv_shuffle: PASS\n")));
}

class KvShuffleTrace : public testing::Test {
 protected:
  static void expect_public_trace_passes(const std::string& name, const std::string& requests) {
    const std::string file = test_support::public_trace(name);
    if (!std::filesystem::exists(file)) {
      GTEST_SKIP() << file << test_support::kNoTrace;
    }
    const Outcome outcome = shuffle(4, "fake", {"--check", "--trace", file});
    expect_pass(outcome, 4);
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(file), HasSubstr(requests)));
  }

  std::string write(const std::string& content) {
    std::ofstream(dir_.file("trace")) << content;
    return dir_.file("trace");
  }

  test_support::TempDir dir_;
};

TEST_F(KvShuffleTrace, RunsThePublicMooncakeTrace) {
  expect_public_trace_passes("mooncake_conversation_2000.jsonl", "2000 requests");
}

TEST_F(KvShuffleTrace, RunsThePublicAzureTrace) {
  expect_public_trace_passes("azure_llm_inference_conv.csv", "19366 requests");
}

TEST_F(KvShuffleTrace, NamesFileAndLineOfAMalformedRequest) {
  const std::string file = write(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:46.6805900,374,44\n"
      "2023-11-16 18:15:50.9951690,many,109\n");
  expect_failure(shuffle(2, "off", {"--trace", file}), 1,
                 "kv_shuffle: FAIL: " + file + ":3: ContextTokens is \"many\"");
}

TEST_F(KvShuffleTrace, RefusesATraceWithoutRequests) {
  expect_failure(shuffle(2, "off", {"--trace", write("")}), 1, dir_.file("trace") + ": the trace is empty");
  expect_failure(shuffle(2, "off", {"--trace", write("TIMESTAMP,ContextTokens,GeneratedTokens\n")}), 1,
                 "a header and no request");
}

TEST_F(KvShuffleTrace, NamesATraceThatIsNotThere) {
  expect_failure(shuffle(2, "off", {"--trace", dir_.file("none")}), 1,
                 dir_.file("none") + ": No such file or directory");
}

TEST(KvShuffleOptions, AreRefusedByName) {
  expect_failure(shuffle(2, "off", {"--cores", "0"}), 2, "--cores");
  expect_failure(shuffle(2, "off", {"--rounds", "x"}), 2, "--rounds");
  expect_failure(shuffle(2, "off", {"--element-size", "3"}), 2, "--element-size");
  expect_failure(shuffle(2, "off", {"--no-such-option"}), 2, "--no-such-option");
  expect_failure(shuffle(2, "off", {"--blocks", "1048576", "--heads", "1024", "--page", "1024"}), 2, "1 TiB");
}

TEST(KvShuffleOptions, HelpNamesThemOnce) {
  const Outcome outcome = shuffle(2, "off", {"--help"});
  EXPECT_TRUE(outcome.exit.clean());
  const auto first = outcome.output.find("--trace");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(outcome.output.find("--trace", first + 1), std::string::npos);
}

TEST(KvShuffleOptions, CachesThatDoNotFitTheHeapAreRefusedWithTheSizeThatWouldDo) {
  const auto run_with = [](const std::string& size) {
    return test_support::run(command(2, "off", {"--blocks", "100", "--check"}), {"SHMEM_SYMMETRIC_SIZE=" + size},
                             kLimit);
  };
  const Outcome outcome = run_with("4M");
  expect_failure(outcome, 1, "caches of each PE take 13107200 bytes (100 blocks of 131072, all layers)");
  EXPECT_THAT(outcome.output, HasSubstr("set SHMEM_SYMMETRIC_SIZE=15M or more, or take --blocks 15 or fewer\n"));
  expect_pass(run_with("15M"), 2);
}

TEST(KvShuffleManual, NamesEveryOptionAndNoOther) {
  const auto help = test_support::run({test_support::program("kv_shuffle"), "--help"}).output;
  const auto options = test_support::options_in_help(help);
  EXPECT_GT(options.size(), 20U);
  EXPECT_EQ(test_support::options_in_manual(test_support::manual(KV_PROGRAM "/kv_shuffle.1")), options);
}

TEST(KvShuffleManual, IsReadWithoutWarnings) {
  const auto warnings = test_support::run(
      {"sh", "-c", "if command -v groff >/dev/null; then groff -ww -man -Tutf8 -z -- \"$0\"; else echo no groff; fi",
       KV_PROGRAM "/kv_shuffle.1"});
  if (warnings.output == "no groff\n") {
    GTEST_SKIP() << warnings.output;
  }
  EXPECT_EQ(warnings.output, "");
}

std::set<std::string> completions(const std::vector<std::string>& words) {
  return test_support::completions(KV_PROGRAM "/kv_shuffle.bash", "_kv_shuffle", test_support::program("kv_shuffle"),
                                   words);
}

TEST(KvShuffleCompletion, OffersOptionsAndTheNamesTheyTake) {
  const auto help = test_support::run({test_support::program("kv_shuffle"), "--help"}).output;
  EXPECT_EQ(completions({"--"}), test_support::options_in_help(help));
  EXPECT_EQ(completions({"--check", "--pl"}), std::set<std::string>{"--plan"});
  EXPECT_EQ(completions({"--plan", ""}), (std::set<std::string>{"pair", "balanced"}));
  EXPECT_EQ(completions({"--format", "by"}), (std::set<std::string>{"by-layer", "by-block"}));
  EXPECT_EQ(completions({"--model", "Deep"}), std::set<std::string>{"DeepSeek-V3"});
  EXPECT_EQ(completions({"--dtype", "bf"}), (std::set<std::string>{"bf16", "bfloat16"}));
  EXPECT_EQ(completions({"--rounds", ""}), std::set<std::string>{"all"});
}

}  // namespace
