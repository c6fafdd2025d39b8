// SPDX-License-Identifier: Apache-2.0
// The plans and results of kv_shuffle, read from its JSON: plans, formats, models, whole traces.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/integration/kv/kv_program_jobs.hpp"
#include "tests/support/json.hpp"
#include "tests/support/traces.hpp"

namespace {

using kv_jobs::expect_failure;
using kv_jobs::shuffle;
using test_support::Json;
using test_support::Outcome;
using testing::HasSubstr;
using testing::Not;

/// Runs with --json and --check, and expects success.
Json found(int pes, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--check", "--json"});
  const Outcome outcome = shuffle(pes, "off", arguments);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  Json result = Json::parse_or_null(outcome.output);
  EXPECT_TRUE(result.is_object()) << outcome.output;
  EXPECT_EQ(result.value("result", ""), "PASS");
  EXPECT_EQ(result.value("checked", false), true);
  return result;
}

class KvTraces : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Public, KvTraces,
                         testing::Values("mooncake_conversation_2000.jsonl", "azure_llm_inference_conv.csv"));

/// Whole traces, with small blocks.
TEST_P(KvTraces, AreMoreEvenAndCheaperWithTheBalancedPlan) {
  const std::string trace = test_support::public_trace(GetParam());
  if (!std::filesystem::exists(trace)) {
    GTEST_SKIP() << trace << test_support::kNoTrace;
  }
  const std::vector<std::string> arguments{"--trace", trace, "--rounds",   "all", "--blocks", "400", "--heads", "1",
                                           "--page",  "64",  "--head-dim", "8",   "--cores",  "1"};
  std::vector<std::string> balanced = arguments;
  balanced.insert(balanced.end(), {"--plan", "balanced"});
  const Json in_pairs = found(3, arguments);
  const Json even = found(3, balanced);
  EXPECT_GE(even["rounds"].size(), 5U);
  std::int64_t tokens = 0;
  for (const Json& round : even["rounds"]) {
    std::int64_t before = 0;
    std::int64_t after = 0;
    for (const Json& load : round["load_before"]) {
      before += load.get<std::int64_t>();
    }
    for (const Json& load : round["load_after"]) {
      after += load.get<std::int64_t>();
    }
    EXPECT_EQ(before, after);
    tokens += before;
  }
  EXPECT_GT(tokens, 0);
  EXPECT_EQ(in_pairs["imbalance_before"], even["imbalance_before"]);
  EXPECT_LE(even["imbalance_after"].get<double>(), in_pairs["imbalance_after"].get<double>() / 2);
  const auto cost = [](const Json& result) {
    return result["bytes"].get<double>() /
           (result["imbalance_before"].get<double>() - result["imbalance_after"].get<double>());
  };
  EXPECT_LE(cost(even), cost(in_pairs));
}

TEST(KvPlans, MoveAsWellAsCopyInAnyFormat) {
  const std::vector<std::pair<std::string, std::string>> ways{{"pair", "move"}, {"balanced", "copy"}};
  for (const std::string format : {"apart", "by-layer", "interleaved", "by-block", "latent"}) {
    for (const auto& [plan, mode] : ways) {
      const Json result = found(3, {"--format", format, "--plan",    plan, "--mode",     mode, "--layers",       "3",
                                    "--heads",  "1",    "--page",    "16", "--head-dim", "5",  "--element-size", "8",
                                    "--cores",  "3",    "--repeats", "1",  "--rounds",   "4"});
      EXPECT_EQ(result["setup"]["cache"]["format"], format);
      EXPECT_EQ(result["setup"]["mode"], mode);
      EXPECT_GT(result["blocks"], 0);
      EXPECT_LT(result["imbalance_after"], result["imbalance_before"]);
      EXPECT_EQ(result["bytes"].get<std::int64_t>(),
                result["blocks"].get<std::int64_t>() * 3 * (format == "latent" ? 1 : 2) * 16 * 5 * 8);
    }
  }
  const Json cleared = found(2, {"--plan", "balanced", "--mode", "move", "--page", "16", "--rounds", "2"});
  EXPECT_EQ(cleared["setup"]["mode"], "move");
}

TEST(KvPlans, TakeTheCachesOfModels) {
  const Json latent = found(2, {"--model", "DeepSeek-V3", "--plan", "balanced", "--rounds", "2", "--blocks", "8"});
  EXPECT_EQ(latent["setup"]["cache"]["head_dim"], 576);
  EXPECT_EQ(latent["setup"]["cache"]["block_bytes"], 61 * 64 * 576 * 2);
  const Outcome outcome =
      test_support::run(kv_jobs::command(2, "off", {"--model", "Llama-3-70B", "--check", "--rounds", "1"}),
                        {"SHMEM_SYMMETRIC_SIZE=64M"}, kv_jobs::kLimit);
  expect_failure(outcome, 1, "set SHMEM_SYMMETRIC_SIZE=127M or more, or take --blocks 12 or fewer\n");
}

TEST(KvPlans, TakeAnIntervalOfTheTrace) {
  const Json all = found(2, {"--rounds", "1"});
  const Json some = found(2, {"--rounds", "1", "--from", "10", "--to", "200"});
  EXPECT_EQ(all["setup"]["requests"], 4000);
  EXPECT_GT(some["setup"]["requests"], 100);
  EXPECT_LT(some["setup"]["requests"], 2000);
  EXPECT_THAT(some["setup"]["trace"].get<std::string>(), HasSubstr("from 10 s to 200 s"));
  expect_failure(shuffle(2, "off", {"--from", "1000000"}), 1, "has no requests");
}

TEST(KvOutputs, AreJsonAndAPlotInFiles) {
  const test_support::TempDir dir;
  const Outcome outcome =
      shuffle(3, "fake", {"--json", dir.file("j"), "--report", dir.file("r"), "--rounds", "2", "--check"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, testing::EndsWith("kv_shuffle: PASS\n"));
  std::ifstream file(dir.file("j"));
  const Json result = Json::parse_or_null(file);
  EXPECT_EQ(result["rounds"].size(), 2U);
  EXPECT_GT(result["barriers"]["by_device"], 0);
  EXPECT_GT(result["barriers"]["device_us"], 0);
  EXPECT_GT(result["barriers"]["share_of_time"], 0);
  EXPECT_GT(result["gb_per_s"], 0);
  EXPECT_GT(result["memcpy_gb_per_s"], 0);
  std::ifstream picture(dir.file("r"));
  const std::string svg{std::istreambuf_iterator<char>(picture), {}};
  EXPECT_THAT(svg, testing::AllOf(testing::StartsWith("<svg "), testing::EndsWith("</svg>\n")));
}

TEST(KvOutputs, ThatCannotBeWrittenAreNamedBeforeTheWork) {
  const Outcome outcome = shuffle(2, "off", {"--report", "/nowhere/r.svg"});
  expect_failure(outcome, 1, "kv_shuffle: FAIL: cannot write /nowhere/r.svg: No such file or directory");
  EXPECT_THAT(outcome.output, Not(HasSubstr("shuffled:")));
  expect_failure(shuffle(2, "off", {"--json", "/nowhere/j"}), 1, "cannot write /nowhere/j");
}

TEST(KvOutputs, AreJsonAfterAFailureToo) {
  const test_support::TempDir dir;
  expect_failure(shuffle(2, "off", {"--json", dir.file("j"), "--trace", dir.file("none")}), 1, "No such file");
  std::ifstream file(dir.file("j"));
  const Json result = Json::parse_or_null(file);
  EXPECT_EQ(result["result"], "FAIL");
  EXPECT_THAT(result["failure"].get<std::string>(), HasSubstr(dir.file("none")));
}

TEST(KvOutputs, HaveNoProgressWithoutATerminal) {
  EXPECT_THAT(shuffle(2, "off", {"--rounds", "3"}).output, Not(HasSubstr("\r")));
}

}  // namespace
