// SPDX-License-Identifier: Apache-2.0
// The parts of the program kv_shuffle that need no PEs: its command line, models, results, JSON and picture.
#include <gmock/gmock.h>

#include "tests/support/json.hpp"
#include "tools/kv_shuffle/round_planner.hpp"

namespace {

using kv_program::CommandLine;
using kv_program::Load;
using kv_program::Results;
using testing::ElementsAre;
using testing::HasSubstr;

CommandLine read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kv_shuffle");
  return kv_program::read_command_line(static_cast<int>(arguments.size()), arguments.data());
}

kv_program::Options options(const std::vector<const char*>& arguments) {
  const CommandLine line = read(arguments);
  EXPECT_TRUE(line.go_on) << line.text;
  return line.options;
}

void expect_refused(const std::vector<const char*>& arguments, const std::string& text) {
  const CommandLine line = read(arguments);
  EXPECT_FALSE(line.go_on) << text;
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.text, HasSubstr(text));
}

TEST(KvOptions, HaveDefaults) {
  const kv_program::Options usual = options({});
  EXPECT_EQ(usual.shape.bytes_of_part(), 64 * 1024);
  EXPECT_EQ(usual.shape.blocks, 160);
  EXPECT_FALSE(usual.blocks_by_budget);
  EXPECT_EQ(usual.rounds, 10);
  EXPECT_EQ(usual.repeats, 10);
  EXPECT_EQ(usual.planner, kv_program::Planner::kPair);
  EXPECT_FALSE(usual.json);
}

TEST(KvOptions, UseTheCachesOfAModelAndExplicitOptions) {
  const kv_program::Options model =
      options({"--model", "llama-3-70b", "--dtype", "fp8", "--layers", "3", "--format", "by-block"});
  EXPECT_EQ(model.model, "Llama-3-70B");
  EXPECT_EQ(model.shape.format, kv_program::Format::kByBlock);
  EXPECT_EQ(model.shape.layers, 3);
  EXPECT_EQ(model.shape.kv_heads, 8);
  EXPECT_EQ(model.shape.page_size, 16);
  EXPECT_EQ(model.shape.head_dim, 128);
  EXPECT_EQ(model.shape.element_size, 1);
}

TEST(KvOptions, ChooseAsManyBlocksAsFitTheBudget) {
  const kv_program::Options large = options({"--model", "Llama-3-70B"});
  EXPECT_EQ(large.shape.bytes_of_block(), std::int64_t{80} * 2 * 8 * 16 * 128 * 2);
  EXPECT_EQ(large.shape.blocks, 25);
  EXPECT_TRUE(large.blocks_by_budget);
  EXPECT_THAT(kv_program::describe_setup(large, {}), HasSubstr("limited to 128 MiB"));
  EXPECT_EQ(options({"--model", "Llama-3-70B", "--blocks", "1000"}).shape.blocks, 1000);
  EXPECT_EQ(options({"--page", "1024", "--head-dim", "1024", "--layers", "1024"}).shape.blocks, 2);
}

TEST(KvOptions, SupportLatentCaches) {
  const kv_program::Options latent = options({"--model", "DeepSeek-V3"});
  EXPECT_EQ(latent.shape.format, kv_program::Format::kLatent);
  EXPECT_EQ(latent.shape.bytes_of_block(), std::int64_t{61} * 64 * 576 * 2);
  expect_refused({"--model", "DeepSeek-V3", "--format", "apart"}, "DeepSeek-V3 has one latent cache and no V");
  expect_refused({"--model", "Llama-3-8B", "--format", "latent"}, "Llama-3-8B has K and V");
}

TEST(KvOptions, ReadRoundsModeAndPlan) {
  EXPECT_EQ(options({"--rounds", "all"}).rounds, kv_program::kAllRounds);
  EXPECT_EQ(options({"--rounds", "7"}).rounds, 7);
  EXPECT_EQ(options({"--plan", "balanced"}).planner, kv_program::Planner::kBalanced);
  EXPECT_EQ(options({"--mode", "move"}).mode, kv_program::Mode::kMove);
  EXPECT_EQ(options({"--mode", "move"}).repeats, 1);
  const kv_program::Options window = options({"--from", "1.5", "--to", "20"});
  EXPECT_EQ(window.from, 1.5);
  EXPECT_EQ(window.to, 20);
}

TEST(KvOptions, ReadTheOutputFiles) {
  EXPECT_TRUE(options({"--json"}).json_only());
  EXPECT_EQ(options({"--json", "file"}).json, "file");
  EXPECT_FALSE(options({"--json", "file"}).json_only());
  EXPECT_TRUE(options({"--json", "--check"}).json_only());
  EXPECT_EQ(options({"--report", "x.svg"}).report, "x.svg");
}

TEST(KvOptions, HaveTheShapesOfTheExampleForGenerate) {
  EXPECT_EQ(options({"--generate", "d"}).shape.blocks, 80);
  EXPECT_EQ(options({"--generate", "d"}).shape.bytes_of_part(), 128 * 1024);
  EXPECT_EQ(options({"--import", "d"}).shape.page_size, 128);
  EXPECT_EQ(options({"--export", "d"}).rounds, 1);
}

TEST(KvOptions, AreRefusedWithTheReason) {
  for (const char* name : {"--cores", "--repeats", "--blocks", "--heads", "--page", "--head-dim", "--layers",
                           "--element-size", "--format", "--plan", "--mode", "--rounds", "--from", "--tolerance"}) {
    expect_refused({name, "x"}, name);
    expect_refused({name, "-1"}, name);
  }
  for (const char* name : {"--cores", "--rounds", "--repeats", "--blocks", "--heads", "--layers", "--element-size"}) {
    expect_refused({name, "0"}, name);
  }
  expect_refused({"--model", "Llama-9"}, "unknown model; the known models are:\nmodel ");
  expect_refused({"--dtype", "fp7"}, "--dtype fp7: the known types are: int8, ");
  expect_refused({"--dtype", "fp16", "--element-size", "2"}, "excludes");
  expect_refused({"--mode", "move", "--repeats", "2"}, "with --mode move a round can be shuffled once");
  expect_refused({"--from", "5", "--to", "5"}, "--to is not after --from");
  expect_refused({"--blocks", "1048576", "--heads", "1024", "--page", "1024"}, "1 TiB");
}

TEST(KvModels, AreListedWithTheirNumbers) {
  const CommandLine line = read({"--model", "list"});
  EXPECT_FALSE(line.go_on);
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_THAT(line.text, testing::ContainsRegex("Llama-3-8B +32 +8 +128 +16 +bf16 +apart +128.0 +huggingface"));
  EXPECT_THAT(line.text, testing::ContainsRegex("DeepSeek-V3 +61 +1 +576 +64 +bf16 +latent +68.6 "));
}

TEST(KvModels, HaveDtypesOfAllWidths) {
  EXPECT_EQ(kv_program::element_size_of("int8"), 1);
  EXPECT_EQ(kv_program::element_size_of("fp8"), 1);
  EXPECT_EQ(kv_program::element_size_of("bf16"), 2);
  EXPECT_EQ(kv_program::element_size_of("fp32"), 4);
  EXPECT_EQ(kv_program::element_size_of("int64"), 8);
  EXPECT_FALSE(kv_program::element_size_of("q4"));
}

TEST(KvResults, ImbalanceIsTheExcessOfTheFullestPeOverTheMean) {
  EXPECT_DOUBLE_EQ(kv_program::imbalance({10, 10}), 0);
  EXPECT_DOUBLE_EQ(kv_program::imbalance({30, 10}), 0.5);
  EXPECT_DOUBLE_EQ(kv_program::imbalance({40, 0, 0, 0}), 3);
  EXPECT_DOUBLE_EQ(kv_program::imbalance({0, 0}), 0);
  EXPECT_DOUBLE_EQ(kv_program::imbalance({}), 0);
}

Results some_results() {
  Results results;
  results.pes = 2;
  results.device = "none";
  results.trace = "a <trace> & more";
  results.requests = 12;
  results.rounds = {{{30, 10}, {20, 20}, 3, 1, 2e9, 4e9, 0.25}, {{10, 10}, {10, 10}, 0, 0, {}, {}, {}}};
  results.blocks = 30;
  results.bytes = 3000;
  results.barriers = kv_program::BarrierTimes{{}, 1.5, ""};
  results.counts = {0, 7};
  results.checked = true;
  return results;
}

TEST(KvResults, AreMeansAndMediansOfTheRounds) {
  const Results results = some_results();
  EXPECT_DOUBLE_EQ(results.imbalance_before(), 0.25);
  EXPECT_DOUBLE_EQ(results.imbalance_after(), 0);
  EXPECT_THAT(results.mean_load(&kv_program::RoundResult::before), ElementsAre(20, 10));
  EXPECT_THAT(results.mean_load(&kv_program::RoundResult::after), ElementsAre(15, 15));
  EXPECT_EQ(results.median(&kv_program::RoundResult::shuffling), 2e9);
}

TEST(KvJson, HoldsTheResults) {
  const auto json = test_support::Json::parse(kv_program::to_json(options({"--model", "Qwen2.5-7B"}), some_results()));
  EXPECT_EQ(json["result"], "PASS");
  EXPECT_EQ(json["failure"], nullptr);
  EXPECT_EQ(json["setup"]["model"], "Qwen2.5-7B");
  EXPECT_EQ(json["setup"]["cache"]["kv_heads"], 4);
  EXPECT_EQ(json["setup"]["trace"], "a <trace> & more");
  EXPECT_EQ(json["load_before"], test_support::Json::parse("[20, 10]"));
  EXPECT_EQ(json["imbalance_before"], 0.25);
  EXPECT_EQ(json["blocks"], 30);
  EXPECT_EQ(json["blocks_spared"], 1);
  EXPECT_EQ(json["gb_per_s"], 2);
  EXPECT_EQ(json["share_of_memcpy"], 0.5);
  EXPECT_EQ(json["barriers"]["share_of_time"], 0.25);
  EXPECT_EQ(json["barriers"]["by_software"], 7);
  EXPECT_EQ(json["barriers"]["device_us"], nullptr);
  EXPECT_EQ(json["rounds"].size(), 2U);
  EXPECT_EQ(json["rounds"][0]["load_after"], test_support::Json::parse("[20, 20]"));
  EXPECT_EQ(json["rounds"][1]["gb_per_s"], nullptr);
}

TEST(KvJson, HoldsAFailureWithoutResults) {
  Results results;
  results.failure = "no \xff memory";
  const auto json = test_support::Json::parse(kv_program::to_json({}, results));
  EXPECT_EQ(json["result"], "FAIL");
  EXPECT_THAT(json["failure"].get<std::string>(), HasSubstr("memory"));
  EXPECT_EQ(json["gb_per_s"], nullptr);
  EXPECT_TRUE(json["rounds"].empty());
}

/// Two PEs, of which the first has most tokens. All sequences have a common prefix.
class KvPlacementCheck : public testing::Test {
 protected:
  void SetUp() override {
    const shmemx_kv_planning_t planning{.planner = SHMEMX_KV_BALANCED,
                                        .mode = SHMEMX_KV_COPY,
                                        .n_pes = 2,
                                        .reserved = 0,
                                        .blocks = kGeometry.blocks,
                                        .page_size = kGeometry.page,
                                        .tolerance = 0};
    shmemx_kv_plan_t* plan = nullptr;
    ASSERT_EQ(shmemx_kv_plan_balance(sequences_.data(), sequences_.size(), &planning, &plan), 0);
    plan_.reset(plan);
    const shmemx_kv_move_t* moves = nullptr;
    std::size_t count = 0;
    ASSERT_EQ(shmemx_kv_plan_moves(plan, &moves, &count), 0);
    moves_.assign(moves, moves + count);
    ASSERT_GE(moves_.size(), 2U);
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      ASSERT_EQ(shmemx_kv_plan_placement(plan, i, &placements_.emplace_back()), 0);
    }
  }
  [[nodiscard]] std::string lost() const {
    return kv_program::find_misplaced(sequences_, moves_, placements_, 2, kGeometry);
  }

  static constexpr kv_program::Geometry kGeometry{.blocks = 32, .page = 4};
  std::vector<std::int64_t> blocks_{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<std::uint64_t> hashes_{77, 78};
  std::vector<shmemx_kv_sequence_t> sequences_{{0, 16, blocks_.data(), 4, hashes_.data(), 2},
                                               {0, 16, blocks_.data() + 4, 4, hashes_.data(), 2},
                                               {0, 16, blocks_.data() + 8, 4, hashes_.data(), 2},
                                               {1, 8, blocks_.data(), 2, hashes_.data(), 2}};
  kv_program::PlanHandle plan_;
  std::vector<shmemx_kv_move_t> moves_;
  std::vector<shmemx_kv_placement_t> placements_;
};

TEST_F(KvPlacementCheck, FindsEverySequenceComplete) {
  EXPECT_EQ(lost(), "");
}

TEST_F(KvPlacementCheck, FindsABlockThatIsNotSentOrMisplaced) {
  const auto moves = moves_;
  moves_.pop_back();
  EXPECT_THAT(lost(),
              testing::ContainsRegex("^the plan loses block [0-3] of sequence [0-2], which goes from PE 0 to PE 1"));
  moves_ = moves;
  std::swap(moves_[0].dst_block, moves_[1].dst_block);
  EXPECT_THAT(lost(), HasSubstr("the plan loses block "));
}

/// How often `part` is in `text`.
int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(KvReport, DrawsABarBeforeAndOneAfterForEachPe) {
  const std::string svg = kv_program::to_svg(options({}), some_results());
  EXPECT_EQ(svg.find("<svg "), 0U);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "<polyline"), 3);  // the mean, and two lines of imbalance
  EXPECT_THAT(svg, HasSubstr("Tokens of each PE in round 1, the least even one"));
  // The background, a legend of the bars before and after, and these for each of two PEs.
  EXPECT_EQ(count(svg, "<rect"), 1 + 2 + 4);
  EXPECT_THAT(svg, HasSubstr("a &lt;trace&gt; &amp; more"));
  EXPECT_THAT(svg, HasSubstr("mean 20"));
  EXPECT_THAT(svg, HasSubstr("imbalance 25.0 % before, 0.0 % after"));
  EXPECT_THAT(svg, HasSubstr("barriers 25.0 % of the time"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(KvReport, DrawsARunThatFailedAtOnceAndOneWithoutTokens) {
  Results results;
  results.failure = "nothing\x01 works";
  EXPECT_THAT(kv_program::to_svg({}, results), HasSubstr("FAIL: nothing? works"));
  results.rounds = {{{0, 0}, {0, 0}, 0, 0, {}, {}, {}}};
  EXPECT_EQ(kv_program::to_svg({}, results).find("nan"), std::string::npos);
}

}  // namespace
