// SPDX-License-Identifier: Apache-2.0
// oshrun --profile: the counts, bytes and picture of a program whose calls are known.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/json.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr int kPes = 3;
/// The bytes of counted_pes between a PE and its right neighbour.
constexpr int kForth = 24 + 8 + 4 + 24 + 100 + 10 + 48 + 50 + 4 + 8 + 1000 + 80 + 80;
constexpr int kBack = 32 + 8;

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Row {
  long calls = 0, bytes = 0;
  friend bool operator==(const Row&, const Row&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Row& row) {
    return out << row.calls << " calls, " << row.bytes << " bytes";
  }
};

/// The routines of a report.
std::map<std::string, Row> routines(const std::string& text) {
  std::map<std::string, Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (Row row; words >> name >> row.calls >> row.bytes && name.starts_with("shmem_")) {
      rows[name] = row;
    }
  }
  return rows;
}

/// The bytes from PE to PE.
std::vector<std::vector<long>> matrix(const std::string& text) {
  std::istringstream lines(text.substr(text.find("from \\ to")));
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<long>> rows;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    words.ignore(9);
    rows.emplace_back(std::istream_iterator<long>(words), std::istream_iterator<long>());
  }
  return rows;
}

void expect_counts(const std::string& text) {
  const auto rows = routines(text);
  const std::map<std::string, Row> expected{{"shmem_init", {kPes, 0}},
                                            {"shmem_malloc", {kPes, 0}},
                                            {"shmem_long_put", {22 * kPes, 192 * kPes}},
                                            {"shmem_int_p", {kPes, 4 * kPes}},
                                            {"shmem_put32", {kPes, 24 * kPes}},
                                            {"shmem_putmem_nbi", {kPes, 100 * kPes}},
                                            {"shmem_short_iput", {kPes, 10 * kPes}},
                                            {"shmem_ibput64", {kPes, 48 * kPes}},
                                            {"shmem_putmem_signal", {kPes, 50 * kPes}},
                                            {"shmem_signal_wait_until", {kPes, 0}},
                                            {"shmem_longdouble_get", {kPes, 32 * kPes}},
                                            {"shmem_long_g", {kPes, 8 * kPes}},
                                            {"shmem_int_atomic_fetch_add", {kPes, 4 * kPes}},
                                            {"shmem_uint64_atomic_set", {kPes, 8 * kPes}},
                                            {"shmem_ctx_putmem", {kPes, 1000 * kPes}},
                                            {"shmem_ctx_quiet", {kPes, 0}},
                                            {"shmem_double_sum_reduce", {kPes, 56 * kPes}}};
  for (const auto& [name, row] : expected) {
    const auto found = rows.find(name);
    ASSERT_NE(found, rows.end()) << name << '\n' << text;
    EXPECT_EQ(found->second, row) << name;
  }
  EXPECT_EQ(rows.count("pshmem_malloc"), 0U);
  EXPECT_THAT(matrix(text),
              ElementsAre(ElementsAre(0, kForth, kBack), ElementsAre(kBack, 0, kForth), ElementsAre(kForth, kBack, 0)))
      << text;
}

class OshrunProfile : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string program() const { return test_program("counted_" + std::string(GetParam()) + "_pes"); }

  TempDir dir_;
  const std::string prefix_ = dir_.file("report");
};

TEST_P(OshrunProfile, CountsCallsAndBytes) {
  const auto job = run({oshrun(1, "off", {})[0], "--profile=" + prefix_, "-n", "3", program()});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(job.output, "oshrun: profile of 3 PEs: " + prefix_ + ".txt and " + prefix_ + ".svg\n");
  const std::string text = read(prefix_ + ".txt");
  EXPECT_THAT(text, StartsWith("oshrun --profile: 3 PEs on 1 node, "));
  expect_counts(text);
  EXPECT_EQ(routines(text)["shmem_barrier_all"], (Row{2 * kPes, 0}));
  const std::string picture = read(prefix_ + ".svg");
  EXPECT_THAT(picture, AllOf(StartsWith("<svg "), EndsWith("</svg>\n"),
                             HasSubstr("<title>PE 2 to PE 0: " + std::to_string(kForth) + " bytes</title>")));
}

INSTANTIATE_TEST_SUITE_P(Programs, OshrunProfile, Values("c", "cxx"), kNameByParameters);

/// A program in the place of ssh, which makes nodes of this machine.
std::string rsh_in(const TempDir& dir) {
  std::string path = dir.file("rsh");
  std::ofstream(path) << "#!/bin/sh\nhost=$1; shift\nexport SHMEM_HOST_ID=$host\nexec sh -c \"$*\"\n";
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST(OshrunProfile, CountsOnSeveralNodes) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  TempDir dir;
  const std::string prefix = dir.file("report");
  const auto job = run({oshrun(1, "off", {})[0], "--rsh", rsh_in(dir), "-H", "kiwi:2,lemon", "--profile=" + prefix,
                        test_program("counted_c_pes")});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(job.output, "oshrun: profile of 3 PEs: " + prefix + ".txt and " + prefix + ".svg\n");
  expect_counts(read(prefix + ".txt"));
}

TEST(OshrunProfile, NamesTheCallsInWhichAJobEnds) {
  TempDir dir;
  const std::string prefix = dir.file("report");
  const auto job = run({oshrun(1, "off", {})[0], "--profile=" + prefix, "-n", "3", "--grace", "60",
                        test_program("counted_c_pes"), "abort"});
  EXPECT_EQ(job.exit.code, 128 + SIGABRT) << job.output;
  const std::string text = read(prefix + ".txt");
  expect_counts(text);
  EXPECT_THAT(text, ContainsRegex("PE 0 ended in shmem_barrier_all, in which it had been for [0-9.]+ m?s"));
  EXPECT_THAT(text, Not(HasSubstr("PE 1 ended in")));
}

/// The calls of a trace by PE and routine.
std::map<std::pair<int, std::string>, std::vector<Json>> calls_of(const std::string& path) {
  std::ifstream file(path);
  std::map<std::pair<int, std::string>, std::vector<Json>> calls;
  for (const auto& event : Json::parse(file)) {
    if (event["ph"] == "X") {
      calls[{event["pid"].get<int>(), event["name"].get<std::string>()}].push_back(event);
    }
  }
  return calls;
}

void expect_calls_of(int pe, std::map<std::pair<int, std::string>, std::vector<Json>> calls) {
  EXPECT_GE((calls[{pe, "barrier"}].size()), 2U) << "of libshmem itself";
  EXPECT_EQ((calls[{pe, "shmem_barrier_all"}].size()), 2U);
  EXPECT_EQ((calls[{pe, "shmem_signal_wait_until"}].size()), 1U);
  EXPECT_EQ((calls[{pe, "shmem_double_sum_reduce"}].size()), 1U);
  EXPECT_EQ((calls[{pe, "shmem_int_atomic_fetch_add"}].size()), 1U);
  EXPECT_EQ((calls[{pe, "shmem_long_g"}].size()), 1U);
  ASSERT_EQ((calls[{pe, "shmem_long_put"}].size()), 22U);
  const Json& put = calls[{pe, "shmem_long_put"}].front();
  EXPECT_EQ(put["cat"], "put");
  EXPECT_EQ(put["args"]["bytes"], 24);
  EXPECT_EQ(put["args"]["pe"], (pe + 1) % kPes);
  EXPECT_GE(put["dur"], 0.0);
  // Both clocks are one: libshmem's own barrier is within the call.
  const Json& call = calls[{pe, "shmem_barrier_all"}].back();
  const double begin = call["ts"].get<double>();
  const auto inside = [&](const Json& own) {
    return own["ts"] >= begin &&
           own["ts"].get<double>() + own["dur"].get<double>() <= begin + call["dur"].get<double>();
  };
  const auto& own = calls[{pe, "barrier"}];
  EXPECT_TRUE(std::any_of(own.begin(), own.end(), inside));
}

TEST(OshrunProfile, TracesCallsBesideTheBarriers) {
  TempDir dir;
  const std::string trace = dir.file("trace.json");
  const auto job =
      run({oshrun(1, "off", {})[0], "--profile=" + dir.file("report"), "-n", "3", test_program("counted_c_pes")},
          {"SHMEM_TRACE=" + trace});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  for (int pe = 0; pe < kPes; ++pe) {
    expect_calls_of(pe, calls_of(trace));
  }
}

TEST(OshrunProfile, TracesCallsOfEachNode) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  TempDir dir;
  const std::string trace = dir.file("trace.json");
  const auto job = run({oshrun(1, "off", {})[0], "--rsh", rsh_in(dir), "-H", "kiwi:2,lemon",
                        "--profile=" + dir.file("report"), test_program("counted_c_pes")},
                       {"SHMEM_TRACE=" + trace});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  expect_calls_of(1, calls_of(trace));
  expect_calls_of(2, calls_of(trace + ".1"));
}

TEST(OshrunProfile, ProgramsWithoutTheLibraryAreNamed) {
  TempDir dir;
  const std::string prefix = dir.file("report");
  const auto job = run({oshrun(1, "off", {})[0], "--profile=" + prefix, "-n", "2", "true"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(read(prefix + ".txt"), HasSubstr("No PE has called shmem_init: "));
}

/// The routines that a library defines for programs.
std::set<std::string> exported(const std::string& library) {
  const auto symbols = run({"nm", "-D", "--defined-only", library});
  std::set<std::string> names;
  std::istringstream lines(symbols.output);
  for (std::string address, type, name; lines >> address >> type >> name;) {
    name = name.substr(0, name.find('@'));
    if (std::set<std::string>{"T", "W", "i"}.count(type) != 0) {
      names.insert(name);
    }
  }
  return names;
}

TEST(OshrunProfile, TheLibraryHasEveryRoutineThatHasATwin) {
  const auto all = exported(SHMEM_LIBRARY);
  const auto counted = exported(PROFILE_LIBRARY);
  std::set<std::string> expected;
  for (const std::string& name : all) {
    if (name.starts_with('p') && all.count(name.substr(1)) != 0) {
      expected.insert(name.substr(1));
    }
  }
  EXPECT_GT(expected.size(), 1900U);
  EXPECT_EQ(counted, expected);
}

}  // namespace
