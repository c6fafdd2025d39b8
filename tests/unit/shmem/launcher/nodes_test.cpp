// SPDX-License-Identifier: Apache-2.0
// What oshrun tells the oshruns that it starts on other nodes, and what it keeps of their PEs' output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "shmem/launcher/node_part.hpp"
#include "shmem/launcher/recent_lines.hpp"
#include "shmem/launcher/remote_job.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace shmem::launcher;  // NOLINT(google-build-using-namespace): most of what is tested
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace): literals

Options two_programs() {
  Options job;
  job.grace = std::chrono::milliseconds{500};
  job.programs = {{.pes = 3, .exports = {{"A", "1"}}, .folder = "", .command = {"one", "x y"}},
                  {.pes = 2, .exports = {{"B", "=2"}, {"C", ""}}, .folder = "sub", .command = {"/bin/two"}}};
  return job;
}

TEST(NodePart, HasThePesOfItsNode) {
  const Options job = two_programs();
  EXPECT_THAT(part_arguments(job, {"a", 0, 2}, "/w"), ElementsAre("--part", "0/5", "--bind", "none", "--grace", "0.5",
                                                                  "-n", "2", "--wdir", "/w", "--", "one", "x y"));
  EXPECT_THAT(part_arguments(job, {"b", 2, 3}, "/w"),
              ElementsAre("--part", "2/5", "--bind", "none", "--grace", "0.5", "-n", "1", "--wdir", "/w", "--", "one",
                          "x y", ":", "-n", "2", "--wdir", "/w/sub", "--", "/bin/two"));
  const auto variables = part_variables(job, {"b", 2, 3});
  ASSERT_THAT(variables, SizeIs(3));
  EXPECT_EQ(variables[0].program, 0);
  EXPECT_EQ(variables[1].program, 1);
  EXPECT_EQ(variables[1].entry, "B==2");
  // Only the second program.
  EXPECT_EQ(part_variables(job, {"c", 3, 2})[0].program, 0);
}

TEST(NodePart, IsUnderstoodByTheOtherOshrun) {
  Options job = two_programs();
  job.bind = Bind::kNuma;
  job.tag_output = true;
  job.report_bindings = true;
  job.gba = "off";
  auto arguments = part_arguments(job, {"b", 2, 3}, "/w");
  arguments.insert(arguments.begin(), "oshrun");
  std::vector<const char*> pointers;
  pointers.reserve(arguments.size());
  for (const auto& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  const auto read = parse_options(static_cast<int>(pointers.size()), pointers.data());
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_TRUE(read->part);
  EXPECT_EQ(read->part->first, 2);
  EXPECT_EQ(read->part->total, 5);
  EXPECT_EQ(read->number(1), 3);
  EXPECT_EQ(read->bind, Bind::kNuma);
  EXPECT_TRUE(read->tag_output && read->report_bindings);
  EXPECT_EQ(read->gba, "off");
  EXPECT_EQ(read->grace, job.grace);
  ASSERT_THAT(read->programs, SizeIs(2));
  EXPECT_THAT(read->programs[0].command, ElementsAre("one", "x y"));
  EXPECT_EQ(read->programs[1].folder, "/w/sub");
}

TEST(NodePart, VariablesPassThroughAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string bytes = encode({{-1, "A=1\n2"}, {3, "B=x:y=z"}, {0, "C="}}) + "rest";
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(ends[1]);
  const auto read = read_variables(ends[0]);
  ASSERT_TRUE(read);
  ASSERT_THAT(*read, SizeIs(3));
  EXPECT_EQ((*read)[0].program, -1);
  EXPECT_EQ((*read)[0].entry, "A=1\n2");
  EXPECT_EQ((*read)[1].program, 3);
  EXPECT_EQ((*read)[1].entry, "B=x:y=z");
  std::array<char, 8> rest{};
  EXPECT_EQ(::read(ends[0], rest.data(), rest.size()), 4);
  EXPECT_FALSE(read_variables(ends[0])) << "the end of the input is no list";
  ::close(ends[0]);
}

TEST(NodePart, EnvironmentLeavesOutWhatBelongsToThisNode) {
  ::setenv("SHMEM_HOST_ID", "here", 1);
  ::setenv("NODE_PART_TEST", "passed", 1);
  const auto entries = environment_for_nodes();
  ::unsetenv("SHMEM_HOST_ID");
  ::unsetenv("NODE_PART_TEST");
  EXPECT_THAT(entries, ::testing::Contains("NODE_PART_TEST=passed"));
  EXPECT_THAT(entries, ::testing::Not(::testing::Contains("SHMEM_HOST_ID=here")));
}

TEST(NodePart, EnvironmentLeavesOutSecretsAndNamesOfThisNode) {
  const std::vector<std::string> kept{"HOME",
                                      "TMPDIR",
                                      "KRB5CCNAME",
                                      "XDG_RUNTIME_DIR",
                                      "SSH_AGENT_PID",
                                      "SLURM_NODEID",
                                      "PMIX_RANK",
                                      "OMPI_COMM_WORLD_RANK",
                                      "HF_TOKEN",
                                      "GITHUB_TOKEN",
                                      "AWS_SECRET_ACCESS_KEY",
                                      "db_password",
                                      "OPENAI_API_KEY",
                                      "AWS_ACCESS_KEY_ID",
                                      "SHMEM_UID_SECRET"};
  const std::vector<std::string> passed{
      "PATH", "LD_LIBRARY_PATH",        "OMP_NUM_THREADS", "UCX_TLS",    "SHMEM_DEBUG",
      "LANG", "TOKENIZERS_PARALLELISM", "MAX_TOKENS",      "OMPI_MCA_a", "SLURM_JOB_ID"};
  std::vector<std::pair<std::string, std::optional<std::string>>> before;
  for (const auto& names : {kept, passed}) {
    for (const std::string& name : names) {
      const char* value = std::getenv(name.c_str());
      before.emplace_back(name, value != nullptr ? std::optional<std::string>(value) : std::nullopt);
      ::setenv(name.c_str(), "node_part_test", 1);
    }
  }
  const auto entries = environment_for_nodes();
  for (const auto& [name, value] : before) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  for (const std::string& name : kept) {
    EXPECT_THAT(entries, ::testing::Not(::testing::Contains(name + "=node_part_test")));
  }
  for (const std::string& name : passed) {
    EXPECT_THAT(entries, ::testing::Contains(name + "=node_part_test"));
  }
}

TEST(NodePart, WordsPassThroughAShell) {
  const std::vector<std::string> words{"printf", "%s|", "a b", "it's", "$HOME", "*", "", "\"q\"", "back\\slash", "-n"};
  EXPECT_EQ(test_support::run({"/bin/sh", "-c", quoted(words)}).output, "a b|it's|$HOME|*||\"q\"|back\\slash|-n|");
}

TEST(NodeMark, IsTakenOutOfWhatALoginPrints) {
  NodeMark at_once;
  EXPECT_EQ(at_once.feed(std::string(kNodeReady) + "output\n"), "output\n");
  EXPECT_TRUE(at_once.found());
  EXPECT_EQ(at_once.feed("more\n"), "more\n");
  NodeMark in_pieces;
  std::string passed;
  for (const char byte : "welcome\n\x01 almost\n" + std::string(kNodeReady) + "output") {
    passed += in_pieces.feed(std::string_view(&byte, 1));
  }
  EXPECT_TRUE(in_pieces.found());
  EXPECT_EQ(passed, "welcome\n\x01 almost\noutput");
}

TEST(NodeMark, EndsBeforeWhatThePesPrint) {
  const std::vector<MpirProcess> pes{{"kiwi", "/bin/a:b c", 4711}, {"kiwi", "/bin/d", 12}};
  const std::string bytes = "begin\n" + encode(pes) + "output\n\0\0more"s;
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    NodeMark mark(kNodePes, kNodePesEnd);
    std::string behind;
    std::string passed;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      passed += mark.feed(std::string_view(bytes).substr(at, piece), &behind);
    }
    EXPECT_TRUE(mark.is_complete());
    EXPECT_EQ(passed, "begin\noutput\n\0\0more"s);
    const auto decoded = decode_pes(behind, "kiwi");
    ASSERT_EQ(decoded.size(), 2U);
    EXPECT_EQ(decoded[0].host + " " + decoded[0].program, "kiwi /bin/a:b c");
    EXPECT_EQ(decoded[0].pid, 4711);
    EXPECT_EQ(decoded[1].program, "/bin/d");
  }
}

TEST(RecentLines, AreShownAgainIfOthersHaveFollowed) {
  RecentLines recent(2);
  recent.add(0, "first\nsecond\n");
  EXPECT_THAT(recent.out_of_sight(0), IsEmpty());
  for (std::uint64_t i = 0; i < RecentLines::kScreen; ++i) {
    recent.add(1, "x\n");
  }
  EXPECT_THAT(recent.out_of_sight(0), ElementsAre("first", "second"));
  EXPECT_THAT(recent.out_of_sight(1), IsEmpty());
}

TEST(RecentLines, AreBounded) {
  RecentLines recent(2);
  for (int i = 0; i < 10000; ++i) {
    recent.add(0, "line " + std::to_string(i) + "\n");
  }
  recent.add(0, std::string(100000, 'a'));
  for (std::uint64_t i = 0; i < RecentLines::kScreen; ++i) {
    recent.add(1, "x\n");
  }
  const auto lines = recent.out_of_sight(0);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0], std::string(RecentLines::kBytes, 'a'));
}

}  // namespace
