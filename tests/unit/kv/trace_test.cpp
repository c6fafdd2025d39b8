// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "shmem/kv/builtin_trace.hpp"
#include "shmem/kv/trace_file.hpp"
#include "shmem/kv/window.hpp"
#include "tests/support/process.hpp"

namespace {

using shmem::kv::BuiltinTrace;
using shmem::kv::Geometry;
using shmem::kv::Request;
using shmem::kv::Trace;
using shmem::kv::TraceFile;
using shmem::kv::WindowDealer;
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

  /// All requests, or the text of the first error.
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

  /// The content is refused at `line` for a reason that has `reason` in it.
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
                             "2023-11-16 18:15:46.6805900,374,44\n"
                             "2024-02-29 00:00:00,0,1\n"
                             "1970-01-02 00:00:01.5,7,8");
  ASSERT_EQ(requests.size(), 3U) << error_;
  EXPECT_EQ(requests[0].arrival_ms, 1700158546680);
  EXPECT_EQ(requests[0].input_tokens, 374);
  EXPECT_EQ(requests[0].output_tokens, 44);
  EXPECT_EQ(requests[2].arrival_ms, 86'401'500);
}

TEST_F(TraceTest, ReadsLinesThatEndAsOnWindowsAndALastLineWithoutEnd) {
  EXPECT_EQ(read("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46,1,2\r\n").size(), 1U) << error_;
  EXPECT_EQ(read(kMooncake + kMooncake.substr(0, kMooncake.size() - 1)).size(), 2U) << error_;
}

TEST_F(TraceTest, BeginsAgain) {
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

TEST_F(TraceTest, RefusesWhatIsNoTrace) {
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
  EXPECT_THAT(TraceFile::open(dir_.path()).error().text, EndsWith("Is a directory"));
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

/// Requests of the given lengths.
class ListTrace : public Trace {
 public:
  explicit ListTrace(std::vector<std::int64_t> tokens) : tokens_(std::move(tokens)) {}
  shmem::Result<std::optional<Request>> next() override {
    return at_ == tokens_.size() ? std::optional<Request>{} : std::optional(Request{0, tokens_[at_++], 0, {}});
  }
  shmem::Result<void> rewind() override {
    at_ = 0;
    return {};
  }
  [[nodiscard]] std::string name() const override { return "list"; }

 private:
  std::vector<std::int64_t> tokens_;
  std::size_t at_ = 0;
};

WindowDealer dealer(std::vector<std::int64_t> tokens, int pes, const Geometry& geometry) {
  return *WindowDealer::create(std::make_unique<ListTrace>(std::move(tokens)), pes, geometry);
}

TEST(WindowDealer, DealsInTurnUntilSomebodyIsFull) {
  // Half a cache is 3 blocks of 10 tokens; 15 tokens are 2 blocks.
  auto windows = dealer({5, 15, 6, 1, 7, 15, 2}, 2, {6, 10});
  EXPECT_EQ(windows.scale(), 1);
  EXPECT_EQ(windows.requests(), 7);
  // PE 1 has 15 and 1, three blocks; the 15 that it should get next begins the next window.
  EXPECT_THAT(*windows.next(), ElementsAre(ElementsAre(5, 6, 7), ElementsAre(15, 1)));
  // Behind the 2 the trace begins again.
  EXPECT_THAT(*windows.next(), ElementsAre(ElementsAre(15, 5), ElementsAre(2, 15)));
}

TEST(WindowDealer, ScalesRequestsThatAreTooLargeForACache) {
  auto windows = dealer({1000, 500, 1}, 3, {8, 10});
  // Half a cache is 40 tokens, one of them free: 1000 / 39 is 26.
  EXPECT_EQ(windows.scale(), 26);
  EXPECT_THAT(*windows.next(), ElementsAre(ElementsAre(39), ElementsAre(20), ElementsAre(1)));
}

TEST(WindowDealer, AnyWindowCanBePlanned) {
  const Geometry geometry{20, 4};
  for (int pes = 1; pes <= 9; ++pes) {
    auto windows = *WindowDealer::create(std::make_unique<BuiltinTrace>(), pes, geometry);
    for (int i = 0; i < 100; ++i) {
      const auto lengths = windows.next();
      ASSERT_TRUE(lengths);
      const auto plan = shmem::kv::plan_pairs(*lengths, geometry);
      ASSERT_TRUE(plan) << plan.error().text;
    }
  }
}

TEST(WindowDealer, RefusesCachesThatHoldNothing) {
  for (const Geometry& geometry : {Geometry{1, 128}, Geometry{2, 1}, Geometry{2, 0}}) {
    EXPECT_FALSE(WindowDealer::create(std::make_unique<BuiltinTrace>(), 2, geometry));
  }
  EXPECT_FALSE(WindowDealer::create(std::make_unique<BuiltinTrace>(), 0, {80, 128}));
}

}  // namespace
