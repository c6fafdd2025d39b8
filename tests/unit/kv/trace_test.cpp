// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <set>

#include "tests/support/process.hpp"
#include "tools/kv_shuffle/round_planner.hpp"

namespace {

using kv_program::BuiltinTrace;
using kv_program::Request;
using kv_program::Trace;
using kv_program::TraceFile;
using kv_program::WindowDealer;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kMooncake = R"({"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]})"
                              "\n";
const std::string kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

class TraceTest : public testing::Test {
 protected:
  std::string write(const std::string& content) {
    std::ofstream(dir_.file("trace"), std::ios::binary) << content;
    return dir_.file("trace");
  }

  /// All requests before the first error, whose text is then in error_.
  std::vector<Request> read(const std::string& content) {
    auto trace = TraceFile::open(write(content));
    if (!trace) {
      error_ = trace.error().text;
      return {};
    }
    std::vector<Request> requests;
    for (;;) {
      auto request = (*trace)->next();
      if (!request) {
        error_ = request.error().text;
        return requests;
      }
      if (!*request) {
        return requests;
      }
      requests.push_back(**request);
    }
  }

  /// Expects that the content is refused at `line` with a text that contains `reason`.
  void expect_refused(const std::string& content, int line, const std::string& reason) {
    error_.clear();
    read(content);
    EXPECT_THAT(error_, AllOf(StartsWith(dir_.file("trace") + ":" + std::to_string(line) + ": "), HasSubstr(reason)));
  }

  test_support::TempDir dir_;
  std::string error_;
};

TEST_F(TraceTest, ReadsMooncake) {
  const auto requests =
      read(kMooncake + R"({"timestamp": 27000, "input_length": 1, "output_length": 0, "hash_ids": [], "more": {}})"
                       "\n");
  ASSERT_EQ(requests.size(), 2U) << error_;
  EXPECT_EQ(requests[0].tokens(), 7258);
  EXPECT_THAT(requests[0].prefix_blocks, ElementsAre(0, 1, 2));
  EXPECT_EQ(requests[1].arrival_ms, 27000);
  EXPECT_THAT(requests[1].prefix_blocks, IsEmpty());
}

TEST_F(TraceTest, ReadsAzure) {
  const auto requests = read(kAzureHeader +
                             "1970-01-02 00:00:01.5,7,8\n"
                             "2023-11-16 18:15:46.6805900,374,44\n"
                             "2024-02-29 00:00:00,0,1");
  ASSERT_EQ(requests.size(), 3U) << error_;
  EXPECT_EQ(requests[0].arrival_ms, 86'401'500);
  EXPECT_EQ(requests[1].arrival_ms, 1700158546680);
  EXPECT_EQ(requests[1].input_tokens, 374);
  EXPECT_EQ(requests[1].output_tokens, 44);
}

TEST_F(TraceTest, ReadsWindowsLineEndingsAndALastLineWithoutEnd) {
  EXPECT_EQ(read("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46,1,2\r\n").size(), 1U) << error_;
  EXPECT_EQ(read(kMooncake + kMooncake.substr(0, kMooncake.size() - 1)).size(), 2U) << error_;
}

TEST_F(TraceTest, CanBeRewound) {
  for (const std::string& content : {kMooncake + kMooncake, kAzureHeader + "2023-11-16 18:15:46,1,2\n"}) {
    auto trace = *TraceFile::open(write(content));
    while (trace->next()->has_value()) {
    }
    ASSERT_TRUE(trace->rewind());
    EXPECT_TRUE(trace->next()->has_value());
  }
}

TEST_F(TraceTest, NamesFileAndLineOfAMalformedMooncakeRequest) {
  const auto with = [](const std::string& members) { return kMooncake + "{" + members + "}\n"; };
  const std::string ids = R"(, "hash_ids": [])";
  expect_refused(kMooncake + "{\"timestamp\": 0, ", 2, "not JSON: ");
  expect_refused(kMooncake + "[1]\n", 2, "not a JSON object");
  expect_refused(kMooncake + "\n", 2, "not JSON");
  expect_refused(kMooncake + "null\n", 2, "not a JSON object");
  expect_refused(with(""), 2, "no \"timestamp\"");
  expect_refused(with(R"("timestamp": 1, "output_length": 1)" + ids), 2, "no \"input_length\"");
  expect_refused(with(R"("timestamp": 1, "input_length": 1)" + ids), 2, "no \"output_length\"");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 1)"), 2, "no \"hash_ids\"");
  expect_refused(with(R"("timestamp": 1, "input_length": -1, "output_length": 1)" + ids), 2, "\"input_length\" is -1");
  expect_refused(with(R"("timestamp": 1, "input_length": 1.5, "output_length": 1)" + ids), 2,
                 "\"input_length\" is 1.5");
  expect_refused(with(R"("timestamp": 1, "input_length": "1", "output_length": 1)" + ids), 2, "not a whole number");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 9999999999)" + ids), 2, "9999999999");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": 3)"), 2, "not an array");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1, -2])"), 2, "holds -2");
  expect_refused(with(R"("timestamp": -1, "input_length": 1, "output_length": 1)" + ids), 2, "\"timestamp\" is -1");
  expect_refused(with(R"("timestamp": 99999999999999999999, "input_length": 1, "output_length": 1)" + ids), 2,
                 "\"timestamp\" is 1e+20");
  expect_refused(with(R"("timestamp": 1, "input_length": null, "output_length": 1)" + ids), 2, "is null, not a whole");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": ["a"])"), 2, "holds \"a\"");
  expect_refused(with(R"("timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1e30])"), 2, "not an id");
  expect_refused(with(R"("timestamp": 1, "input_length": 512, "output_length": 9, "hash_ids": [1, 2])"), 2,
                 "\"hash_ids\" holds 2 ids, and the 512 tokens of \"input_length\" are 1 block of 512");
}

TEST_F(TraceTest, RefusesValuesOfAnyDepthAndLength) {
  constexpr std::size_t kDeep = 400'000;
  const std::string nested = std::string(kDeep, '[') + std::string(kDeep, ']');
  const std::string end = R"(, "input_length": 1, "output_length": 1, "hash_ids": [])";
  expect_refused(R"({"timestamp": )" + nested + end + "}\n", 1, "\"timestamp\" is an array, not a whole number");
  expect_refused(R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [)" + nested + "]}\n", 1,
                 "\"hash_ids\" holds an array");
  expect_refused(R"({"timestamp": ")" + std::string(kDeep, 'x') + "\"" + end + "}\n", 1, "xxx..., not a whole number");
}

TEST_F(TraceTest, RefusesAnEmptyFirstLine) {
  expect_refused("\n" + kMooncake, 1, "neither a JSON object");
}

TEST_F(TraceTest, NamesFileAndLineOfARequestThatArrivesBeforeTheLastOne) {
  const std::string later = R"({"timestamp": 7, "input_length": 1, "output_length": 1, "hash_ids": []})";
  expect_refused(kMooncake + later + "\n" + later + "\n" + kMooncake, 4, "arrives at 0 ms, before");
  expect_refused(kAzureHeader + "2023-11-16 18:15:46,1,2\n2023-11-16 18:15:45.999,1,2\n", 3,
                 "arrives at 1700158545999 ms, before the request of the line before, at 1700158546000 ms");
}

TEST_F(TraceTest, NamesFileAndLineOfAMalformedAzureRequest) {
  const std::string good = kAzureHeader + "2023-11-16 18:15:46.6805900,374,44\n";
  const std::string time = "2023-11-16 18:15:46.6,";
  expect_refused(good + time + "1\n", 3, "not three fields");
  expect_refused(good + time + "1,2,3\n", 3, "not three fields");
  expect_refused(good + "\n", 3, "not three fields");
  expect_refused(good + time + ",2\n", 3, "ContextTokens is \"\"");
  expect_refused(good + time + "x,2\n", 3, "ContextTokens is \"x\"");
  expect_refused(good + time + "1,-2\n", 3, "GeneratedTokens is \"-2\"");
  expect_refused(good + time + "1,2 \n", 3, "GeneratedTokens is \"2 \"");
  expect_refused(good + time + "99999999999999999999,2\n", 3, "ContextTokens is \"99999999999999999999\"");
  for (const std::string wrong :
       {"", "yesterday", "2023-11-16", "2023-02-29 18:15:46", "2023-13-01 00:00:00", "2023-11-16 24:00:00",
        "2023-11-16 18:60:00", "2023-11-16 18:15", "2023-11-16 18:15:46.", "2023-11-16 18:15:46.6x",
        "2023-11-16T18:15:46", "-2023-11-16 18:15:46"}) {
    expect_refused(kAzureHeader + wrong + ",1,2\n", 2, "TIMESTAMP is \"" + wrong + "\"");
  }
}

TEST_F(TraceTest, RefusesOtherFiles) {
  expect_refused("TIMESTAMP;ContextTokens\n", 1, "neither a JSON object");
  expect_refused(std::string("\x7f"
                             "ELF\0\0",
                             6),
                 1, "neither a JSON object");
  expect_refused("\n", 1, "neither a JSON object");
  expect_refused(std::string(2U << 20, '{'), 1, "the line is longer than 1048576 characters");
}

TEST_F(TraceTest, RefusesATraceWithoutRequests) {
  read("");
  EXPECT_THAT(error_, AllOf(StartsWith(dir_.file("trace")), EndsWith("the trace is empty")));
  read(kAzureHeader);
  EXPECT_THAT(error_, EndsWith("the trace has a header and no request"));
}

TEST_F(TraceTest, NamesAFileThatCannotBeRead) {
  EXPECT_THAT(TraceFile::open(dir_.file("none")).error().text, HasSubstr("none: No such file or directory"));
  EXPECT_THAT(TraceFile::open(dir_.path()).error().text, EndsWith("it is a folder"));
  const std::string fifo = dir_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(TraceFile::open(fifo).error().text, EndsWith("fifo: it is not a regular file")) << "must not wait";
}

std::vector<std::int64_t> all_tokens(Trace& trace) {
  std::vector<std::int64_t> tokens;
  for (auto request = trace.next(); request && *request; request = trace.next()) {
    tokens.push_back((*request)->tokens());
  }
  return tokens;
}

TEST(BuiltinTrace, IsTheSameEveryTime) {
  BuiltinTrace one;
  BuiltinTrace other;
  const auto tokens = all_tokens(one);
  EXPECT_EQ(tokens.size(), std::size_t{BuiltinTrace::kRequests});
  EXPECT_THAT(tokens, Each(Gt(64)));
  EXPECT_EQ(all_tokens(other), tokens);
  ASSERT_TRUE(one.rewind());
  EXPECT_EQ(all_tokens(one), tokens);
}

class ListTrace : public Trace {
 public:
  explicit ListTrace(std::vector<Request> requests) : requests_(std::move(requests)) {}
  kv_program::Result<std::optional<Request>> next() override {
    return at_ == requests_.size() ? std::optional<Request>{} : std::optional(requests_[at_++]);
  }
  kv_program::Result<void> rewind() override {
    at_ = 0;
    return {};
  }
  [[nodiscard]] std::string name() const override { return "list"; }

 private:
  std::vector<Request> requests_;
  std::size_t at_ = 0;
};

std::vector<std::vector<std::int64_t>> lengths_of(const kv_program::TraceWindow& window) {
  std::vector<std::vector<std::int64_t>> lengths;
  for (const auto& sequences : window) {
    auto& tokens = lengths.emplace_back();
    for (const auto& sequence : sequences) {
      tokens.push_back(sequence.tokens);
    }
  }
  return lengths;
}

WindowDealer dealer(std::vector<Request> requests, int pes, const kv_program::Geometry& geometry) {
  return *WindowDealer::create(std::make_unique<ListTrace>(std::move(requests)), pes, geometry);
}

std::vector<Request> of_lengths(const std::vector<std::int64_t>& tokens) {
  std::vector<Request> requests;
  requests.reserve(tokens.size());
  for (const std::int64_t length : tokens) {
    requests.push_back({0, length, 0, {}});
  }
  return requests;
}

TEST(WindowDealer, DealsInTurnUntilAPeIsFull) {
  // Half a cache is 10 blocks of 4 tokens. A sequence takes up to 2 of them; 5 tokens take 2 blocks.
  auto windows = dealer(of_lengths({1, 5, 2, 6, 3, 7, 1, 5, 2, 6, 3, 7, 1, 7}), 2, {20, 4});
  EXPECT_EQ(windows.scale(), 1);
  EXPECT_EQ(windows.requests(), 14);
  // PE 1 has ten blocks, so the 7 that it would get next begins the next window.
  EXPECT_THAT(lengths_of(*windows.next()), ElementsAre(ElementsAre(1, 2, 3, 1, 2, 3), ElementsAre(5, 6, 7, 5, 6)));
  EXPECT_EQ(windows.dealt(), 11);
  // After the last 7 the trace starts again.
  EXPECT_THAT(lengths_of(*windows.next()), ElementsAre(ElementsAre(7, 7, 5, 6, 7), ElementsAre(1, 1, 2, 3, 1)));
  EXPECT_EQ(windows.dealt(), 21);
}

TEST(WindowDealer, ScalesRequestsUntilHalfACacheHoldsFive) {
  auto windows = dealer(of_lengths({1000, 500, 1}), 3, {100, 8});
  // Ten blocks are 80 tokens, of which one stays free: 1000 / 79 is 12.7.
  EXPECT_EQ(windows.scale(), 13);
  const auto lengths = lengths_of(*windows.next());
  EXPECT_EQ(lengths[0][0], 77);
  EXPECT_EQ(lengths[1][0], 39);
  EXPECT_EQ(lengths[2][0], 1);
}

TEST(WindowDealer, HashesThePagesThatLieInThePrompt) {
  const auto hashes = [](std::vector<Request> requests, const kv_program::Geometry& geometry) {
    auto window = *dealer(std::move(requests), 3, geometry).next();
    return std::array{window[0][0].hashes, window[1][0].hashes, window[2][0].hashes};
  };
  // Pages of 300 tokens end in blocks 0, 1, 1 and 2 of 512 tokens; the fifth page ends after the prompt of 1300.
  const auto [one, other, short_one] =
      hashes({{0, 1300, 500, {7, 8, 9}}, {0, 1300, 0, {7, 8, 1}}, {0, 1300, 0, {7, 8}}}, {1000, 300});
  EXPECT_EQ(one.size(), 4U);
  EXPECT_EQ(std::set(one.begin(), one.end()).size(), 4U);
  EXPECT_THAT(short_one, ElementsAre(one[0], one[1], one[2]));
  EXPECT_THAT(std::vector(other.begin(), other.begin() + 3), ElementsAre(one[0], one[1], one[2]));
  EXPECT_NE(other[3], one[3]);
  // With a scale of 5, a page of 100 stands for 500 tokens of the trace, so the prompt of 1300 has two full pages.
  const auto [scaled, same, none] =
      hashes({{0, 1300, 500, {7, 8, 9}}, {0, 1300, 0, {7, 8, 1}}, {0, 499, 0, {7}}}, {40, 100});
  EXPECT_EQ(scaled.size(), 2U);
  EXPECT_EQ(scaled, same);
  EXPECT_THAT(none, IsEmpty());
}

TEST(WindowDealer, PlacesSequencesOneAfterTheOther) {
  const kv_program::PageTables tables({{{10, {5}}, {9}}, {}, {{25}}}, 10);
  const auto sequences = tables.sequences();
  ASSERT_EQ(sequences.size(), 3U);
  const auto blocks = [](const shmemx_kv_sequence_t& sequence) {
    return std::vector(sequence.blocks, sequence.blocks + sequence.block_count);
  };
  EXPECT_THAT(blocks(sequences[0]), ElementsAre(0, 1));
  ASSERT_EQ(sequences[0].hash_count, 1);
  EXPECT_EQ(sequences[0].hashes[0], 5U);
  EXPECT_THAT(blocks(sequences[1]), ElementsAre(2));
  EXPECT_EQ(sequences[1].hash_count, 0);
  EXPECT_EQ(sequences[2].pe, 2);
  EXPECT_THAT(blocks(sequences[2]), ElementsAre(0, 1, 2));
}

TEST(WindowDealer, RefusesATraceWithoutRequests) {
  const auto none = WindowDealer::create(std::make_unique<ListTrace>(std::vector<Request>{}), 2, {80, 128});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("the trace list has no requests"));
}

kv_program::Result<std::unique_ptr<Trace>> slice(std::int64_t from_ms, std::optional<std::int64_t> to_ms) {
  std::vector<Request> requests;
  for (const std::int64_t time : {100, 100, 200, 300, 400}) {
    requests.push_back({time, 1, static_cast<std::int64_t>(requests.size()), {}});
  }
  return kv_program::TraceSlice::create(std::make_unique<ListTrace>(std::move(requests)), from_ms, to_ms);
}

TEST(TraceSlice, HasTheRequestsOfItsTimeRange) {
  EXPECT_THAT(all_tokens(**slice(0, std::nullopt)), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(all_tokens(**slice(0, 1)), ElementsAre(1, 2));
  EXPECT_THAT(all_tokens(**slice(1, 300)), ElementsAre(3, 4));
  EXPECT_THAT(all_tokens(**slice(300, 1000)), ElementsAre(5));
  EXPECT_THAT(all_tokens(**slice(301, 1000)), IsEmpty());
  const auto twice = *slice(100, 200);
  EXPECT_THAT(all_tokens(*twice), ElementsAre(3));
  ASSERT_TRUE(twice->rewind());
  EXPECT_THAT(all_tokens(*twice), ElementsAre(3));
}

TEST(TraceSlice, NamesItsTimeRange) {
  EXPECT_EQ((*slice(0, 1500))->name(), "list from 0 s to 1.5 s");
  EXPECT_EQ((*slice(20, std::nullopt))->name(), "list from 0.02 s on");
  EXPECT_FALSE(slice(-1, 5));
  EXPECT_THAT(slice(5, 5).error().text, HasSubstr("no request can be in the trace list from 0.005 s to 0.005 s"));
  const auto none = WindowDealer::create(*slice(500, 600), 2, {80, 128});
  EXPECT_THAT(none.error().text, HasSubstr("the trace list from 0.5 s to 0.6 s has no requests"));
}

TEST(WindowDealer, AnyWindowCanBePlanned) {
  const kv_program::Geometry geometry{20, 4};
  for (int pes = 1; pes <= 9; ++pes) {
    auto windows = *WindowDealer::create(std::make_unique<BuiltinTrace>(), pes, geometry);
    for (int i = 0; i < 100; ++i) {
      const auto window = windows.next();
      ASSERT_TRUE(window);
      for (const auto planner : {kv_program::Planner::kPair, kv_program::Planner::kBalanced}) {
        const kv_program::Options options{
            .planner = planner, .shape = {.blocks = geometry.blocks, .page_size = geometry.page}, .check = true};
        const auto plan = kv_program::plan_round(options, *window);
        ASSERT_TRUE(plan) << plan.error().text;
      }
    }
  }
}

TEST(WindowDealer, RefusesCachesThatAreTooSmall) {
  for (const kv_program::Geometry& geometry :
       {kv_program::Geometry{1, 128}, kv_program::Geometry{2, 1}, kv_program::Geometry{2, 0}}) {
    EXPECT_FALSE(WindowDealer::create(std::make_unique<BuiltinTrace>(), 2, geometry));
  }
  EXPECT_FALSE(WindowDealer::create(std::make_unique<BuiltinTrace>(), 0, {80, 128}));
}

}  // namespace
