// SPDX-License-Identifier: Apache-2.0
// What the model is told, and what it writes.
#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>
#include <string>

#include "bench/scale/measured.hpp"
#include "bench/scale/parameters.hpp"
#include "bench/scale/tables.hpp"
#include "shmem/net/greeting.hpp"
#include "shmem/team/metadata.hpp"

namespace scale {
namespace {

std::string committed() {
  return contents_of(BENCH_SCALE_FOLDER "/parameters.txt");
}

/// The committed file with another line in place of the one of `key`.
std::string with_line(const std::string& key, const std::string& line) {
  return std::regex_replace(committed(), std::regex(key + " [^\n]*\n"), line + "\n",
                            std::regex_constants::format_first_only);
}

std::string refusal(const std::string& text) {
  try {
    read_parameters("FILE", text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "taken";
}

TEST(ParametersTest, TheCommittedOnesAreRead) {
  const ParameterFile file = read_parameters("parameters.txt", committed());
  EXPECT_EQ(file.values.ports_per_switch, 708);
  EXPECT_EQ(file.values.skew, Distribution::kExponential);
  EXPECT_EQ(file.lines.size(), 29U);
}

TEST(ParametersTest, SizesAreStillAboutThoseOfTheStructs) {
  const Parameters parameters = read_parameters("parameters.txt", committed()).values;
  const auto expect_near = [](double told, std::size_t real) {
    EXPECT_NEAR(told, static_cast<double>(real), static_cast<double>(real) / 4) << "write it into parameters.txt";
  };
  expect_near(parameters.team_words, sizeof(shmem::TeamSync) + sizeof(shmem::RoundWords) + sizeof(shmem::CarriedWords));
  expect_near(parameters.network_kept, sizeof(shmem::Greeting));
  // The start and the length of the address; of each segment address, size and the length of its key.
  expect_near(parameters.network_told,
              sizeof(shmem::GreetingHead) + (2 + 3 * shmem::kSegments) * sizeof(std::uint64_t));
}

TEST(ParametersTest, WhatDoesNotFitIsRefusedWithLineAndKey) {
  const struct {
    const char* key;
    const char* line;
    const char* message;
  } kCases[] = {
      {"network_gap", "network_gap -3 ns assumed a reason", "network_gap is a number from 0 to 1e+09, not \"-3\""},
      {"network_gap", "network_gap fast ns assumed a reason", "not \"fast\""},
      {"network_gap", "network_gap nan ns assumed a reason", "not \"nan\""},
      {"network_gap", "network_gap 1e12 ns assumed a reason", "not \"1e12\""},
      {"network_gap", "network_gap 3 us assumed a reason", "network_gap is in ns, not in \"us\""},
      {"network_gap", "network_gap 3 ns guessed a reason",
       "network_gap: the source is measured, assumed or specified, not \"guessed\""},
      {"network_gap", "network_gap 3 ns assumed", "network_gap: a line is a key, a value, a unit, a source and where"},
      {"network_gap", "network_gip 3 ns assumed a reason", "there is no parameter network_gip"},
      {"radix", "radix 2.5 count assumed a reason", "radix is a whole number from 2 to 8, not \"2.5\""},
      {"ports_per_switch", "ports_per_switch 0 count assumed a reason", "ports_per_switch is a whole number from 2"},
      {"skew_distribution", "skew_distribution normal - assumed a reason", "not \"normal\""},
      {"skew_distribution", "skew_distribution uniform ns assumed a reason", "skew_distribution has no unit"},
      {"skew_seed", "radix 8 count assumed a reason", "radix is there twice"},
  };
  for (const auto& one : kCases) {
    const std::string text = refusal(with_line(one.key, one.line));
    EXPECT_TRUE(std::regex_search(text, std::regex("FILE, line [0-9]+: "))) << text;
    EXPECT_NE(text.find(one.message), std::string::npos) << text;
  }
}

TEST(ParametersTest, TheLineIsTheOneOfTheFile) {
  EXPECT_NE(refusal("# a comment\nbench-scale-parameters 1\n\nradix x count assumed why\n").find("line 4: radix"),
            std::string::npos);
}

TEST(ParametersTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(refusal(with_line("radix", "# none")), "FILE does not say: radix");
  EXPECT_NE(refusal("").find("FILE does not say: line_round_trip, "), std::string::npos);
}

TEST(ParametersTest, AnotherFormatIsRefused) {
  EXPECT_NE(refusal("bench-scale-parameters 2\n").find("begins with \"bench-scale-parameters 1\""), std::string::npos);
}

TEST(ParametersTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THROW(contents_of("/nowhere/parameters.txt"), std::runtime_error);
}

TEST(MeasuredTest, IsReadBackAsItWasWritten) {
  const std::vector<Measured> all{{4, 2, 1000.5, 1100, 120, 900, 1.25, "MPI_Barrier (Open MPI)"},
                                  {2, 2, 50, 60, 100, 100, 0.6, "npu_v1"}};
  const auto back = read_measured("FILE", text_of(all));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].name, "MPI_Barrier (Open MPI)");
  EXPECT_EQ(back[0].least, 1000.5);
  EXPECT_EQ(back[1].ratio, 0.6);
  EXPECT_EQ(text_of(back), text_of(all));
}

TEST(MeasuredTest, OtherLinesAreRefused) {
  for (const char* line : {"2 2 50 60 100 npu_v1", "1 2 50 60 100 100 0.6 npu_v1", "2 2 50 60 100 0 0.6 npu_v1"}) {
    EXPECT_THROW(read_measured("FILE", std::string("bench-scale-measured 1\n") + line + "\n"), std::runtime_error)
        << line;
  }
}

TEST(MeasuredTest, KnowsEveryBarrierThatIsMeasuredButChoices) {
  const Parameters parameters = read_parameters("parameters.txt", committed()).values;
  for (const char* name : {"npu_v1", "npu_v2", "npu_v3", "central_counter", "tournament", "recursive_doubling",
                           "dissemination", "basic", "hierarchical", "MPI_Barrier (Open MPI)"}) {
    EXPECT_GT(modelled({2, 2, 50, 60, 100, 100, 0.6, name}, parameters), 0) << name;
    EXPECT_GT(modelled({8, 2, 5000, 6000, 100, 5000, 1.2, name}, parameters), 0) << name;
  }
  EXPECT_EQ(modelled({2, 2, 50, 60, 100, 100, 0.6, "adaptive"}, parameters), 0);
}

TEST(PageTest, HasEachTableInItsPlace) {
  const std::string page =
      "a\n<!-- bench_scale one -->\nold\n<!-- end -->\nb\n<!-- bench_scale two -->\n<!-- end -->\n";
  const std::string full = filled(page, {{"one", "1\n"}, {"two", "2\n"}});
  EXPECT_EQ(full, "a\n<!-- bench_scale one -->\n1\n<!-- end -->\nb\n<!-- bench_scale two -->\n2\n<!-- end -->\n");
  EXPECT_EQ(filled(full, {{"one", "1\n"}, {"two", "2\n"}}), full);
  EXPECT_THROW(filled(page, {{"one", "1\n"}}), std::runtime_error);
  EXPECT_THROW(filled(page, {{"one", "1\n"}, {"two", "2\n"}, {"three", "3\n"}}), std::runtime_error);
  EXPECT_THROW(filled("<!-- bench_scale one -->\n", {{"one", "1\n"}}), std::runtime_error);
}

}  // namespace
}  // namespace scale
