// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/tuning.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "bench/tuning.hpp"
#include "tests/support/process.hpp"
#include "tests/support/wrong_files.hpp"

namespace {

using shmem::Algorithm;
using shmem::TuningTable;

constexpr const char* kGood = R"(# made by hand
libshmem-barrier-tuning 1

alone    2  npu_v1
alone    64 npu_v2 radix=4   # phases of three
alone    *  hierarchical group=16
oversubscribed  *  central_counter
)";

TEST(TuningTable, ChoosesTheFirstLineThatFits) {
  const auto table = TuningTable::parse(kGood, "good").value();
  EXPECT_EQ(table.choose(2, false).algorithm, Algorithm::kNpuV1);
  EXPECT_EQ(table.choose(3, false).algorithm, Algorithm::kNpuV2);
  EXPECT_EQ(table.choose(64, false).radix, 4);
  EXPECT_EQ(table.choose(64, false).line, 5);
  EXPECT_EQ(table.choose(65, false).algorithm, Algorithm::kHierarchical);
  EXPECT_EQ(table.choose(65, false).group, 16);
  EXPECT_EQ(table.choose(2, true).algorithm, Algorithm::kCentralCounter);
  EXPECT_EQ(table.choose(2, true).radix, std::nullopt);
}

TEST(TuningTable, HasLinesForNodesOrTheBuiltInOnes) {
  const std::string few = std::string(kGood) + "nodes 4 tournament\n";
  const auto table = TuningTable::parse(few + "nodes * npu_v2 radix=3\n", "good").value();
  EXPECT_EQ(table.choose_between(4).algorithm, Algorithm::kTournament);
  EXPECT_EQ(table.choose_between(4).line, 8);
  EXPECT_EQ(table.choose_between(5).algorithm, Algorithm::kNpuV2);
  EXPECT_EQ(table.choose_between(5).radix, 3);
  EXPECT_EQ(table.choose(4, false).algorithm, Algorithm::kNpuV2);  // not the line for nodes

  const auto short_one = TuningTable::parse(few, "short").value();
  EXPECT_EQ(short_one.choose_between(2).line, 8);
  const auto built_in = TuningTable::built_in();
  for (const int nodes : {5, 16, 17, 708}) {
    EXPECT_EQ(short_one.choose_between(nodes).algorithm, built_in.choose_between(nodes).algorithm);
    EXPECT_EQ(short_one.choose_between(nodes).line, 0);
    EXPECT_GT(built_in.choose_between(nodes).line, 0);
  }
}

TEST(TuningTable, CanBeReadBackAfterWriting) {
  const auto table = TuningTable::parse(std::string(kGood) + "nodes 7 basic\nnodes * npu_v2 radix=2\n", "good").value();
  std::string text = "libshmem-barrier-tuning 1\n";
  for (const auto& row : table.rows()) {
    text += to_string(row) + "\n";
  }
  const auto again = TuningTable::parse(text, "again").value();
  ASSERT_EQ(again.rows().size(), table.rows().size());
  for (std::size_t i = 0; i < again.rows().size(); ++i) {
    EXPECT_EQ(to_string(again.rows()[i]), to_string(table.rows()[i]));
  }
}

TEST(TuningTable, TheBuiltInOneCoversAllCases) {
  const auto table = TuningTable::built_in();
  for (const bool oversubscribed : {false, true}) {
    for (const int pes : {1, 2, 8, 708, 1 << 30}) {
      EXPECT_GT(table.choose(pes, oversubscribed).line, 1);
    }
  }
}

void expect_wrong(const std::string& text, int line, const std::string& what) {
  const auto table = TuningTable::parse(text, "/some/file");
  ASSERT_FALSE(table) << text;
  EXPECT_NE(table.error().text.find("/some/file, line " + std::to_string(line) + ": "), std::string::npos)
      << table.error().text;
  EXPECT_NE(table.error().text.find(what), std::string::npos) << table.error().text;
}

TEST(TuningTable, ChoosesTheFastestOfTheMeasurements) {
  using bench::Measured;
  const std::vector<Measured> all{
      {2, false, {{"central_counter", 0.40}, {"npu_v3", 0.39}, {"basic", 2}}},  // the difference is noise
      {4, true, {{"central_counter", 1.0}, {"npu_v2 radix=4", 0.8}}},
      {8, true, {{"central_counter", 1.0}, {"npu_v2 radix=4", 0.9}}},
      {64, true, {{"central_counter", 1.0}, {"hierarchical group=16", 1.1}}},
  };
  const auto table = TuningTable::parse(bench::make_table(all, "of a test"), "made").value();
  std::vector<std::string> rows;
  for (const auto& row : table.rows()) {
    rows.push_back(to_string(row));
  }
  EXPECT_EQ(rows,
            (std::vector<std::string>{"alone           *    central_counter", "oversubscribed  8    npu_v2 radix=4",
                                      "oversubscribed  *    central_counter"}));
}

TEST(TuningTable, KeepsTheBuiltInLinesOfCasesThatWereNotMeasured) {
  const auto table = TuningTable::parse(bench::make_table({}, "of a test"), "made").value();
  // Lines for nodes, which tune_barrier does not measure, need not be kept: they count anyway.
  std::vector<std::string> kept;
  const auto built_in = TuningTable::built_in();
  for (const auto& row : built_in.rows()) {
    if (!row.teams.nodes) {
      kept.push_back(to_string(row));
    }
  }
  ASSERT_EQ(table.rows().size(), kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(to_string(table.rows()[i]), kept[i]);
  }
}

TEST(TuningTable, NamesTheLineOfAnError) {
  const std::string head = "libshmem-barrier-tuning 1\n";
  expect_wrong("", 1, "ends without");
  expect_wrong("# nothing\nalone * basic\n", 2, "begins with");
  expect_wrong("libshmem-barrier-tuning 2\n", 1, "begins with");
  expect_wrong(head + "lonely * basic\n", 2, "\"lonely\"");
  expect_wrong(head + "alone 0 basic\n", 2, "\"0\"");
  expect_wrong(head + "alone 4x basic\n", 2, "\"4x\"");
  expect_wrong(head + "alone\n", 2, "not a number of PEs");
  expect_wrong(head + "nodes 0 basic\n", 2, "\"0\" is not a number of nodes");
  expect_wrong(head + "nodes * basic\n", 3, "alone * ALGORITHM");
  expect_wrong(head + "\nalone * quick\n", 3, "\"quick\"");
  expect_wrong(head + "alone * gba\n", 2, "\"gba\"");
  expect_wrong(head + "alone * npu_v2 radix=9\n", 2, "radix=9");
  expect_wrong(head + "alone * npu_v2 radix\n", 2, "radix");
  expect_wrong(head + "alone * hierarchical group=-1\n", 2, "group=-1");
  expect_wrong(head + "alone * basic fast\n", 2, "\"fast\"");
  expect_wrong(head + "alone * basic\noversubscribed 8 basic\n", 4, "oversubscribed * ALGORITHM");
}

using shmem::Collective;
using shmem::CollectiveTable;

constexpr const char* kCollectives = R"(libshmem-collective-tuning 1
reduce     alone    4  eager=64 scatter-allgather=4096   # few
reduce     alone    *  scatter-allgather=never
broadcast  oversubscribed  8  eager=8
)";

shmem::CollectiveLimits limits(const CollectiveTable& table, Collective collective, int pes, bool oversubscribed) {
  return table.choose(pes, oversubscribed)[static_cast<std::size_t>(collective)];
}

TEST(CollectiveTable, ChoosesTheFirstLineThatFits) {
  const auto table = CollectiveTable::parse(kCollectives, "good").value();
  EXPECT_EQ(limits(table, Collective::kReduce, 4, false).eager, 64U);
  EXPECT_EQ(limits(table, Collective::kReduce, 4, false).scatter_allgather, 4096U);
  EXPECT_EQ(limits(table, Collective::kReduce, 5, false).eager, 0U);
  EXPECT_EQ(limits(table, Collective::kReduce, 5, false).scatter_allgather, shmem::kNever);
  EXPECT_EQ(limits(table, Collective::kBroadcast, 8, true).eager, 8U);
  EXPECT_EQ(limits(table, Collective::kBroadcast, 8, false).eager, 0U);
}

TEST(CollectiveTable, CanBeReadBackAndTheBuiltInOneCoversAllCases) {
  const auto table = CollectiveTable::built_in();
  std::string text = std::string(shmem::kCollectiveFormat) + "\n";
  for (const auto& row : table.rows()) {
    text += to_string(row) + "\n";
  }
  const auto again = CollectiveTable::parse(text, "again").value();
  for (std::size_t i = 0; i < table.rows().size(); ++i) {
    EXPECT_EQ(to_string(again.rows()[i]), to_string(table.rows()[i]));
  }
  EXPECT_EQ(table.rows().size(), 2 * shmem::kCollectives);
}

TEST(CollectiveTable, SendsWhatFitsIntoAPlace) {
  for (const bool oversubscribed : {false, true}) {
    for (const int pes : {2, 8, 708}) {
      const auto choice = CollectiveTable::built_in().choose(pes, oversubscribed);
      for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
        // Without a change of processes, an alltoall of more is not slower with two meetings.
        const auto most = oversubscribed ? shmem::eager_limit(Collective{static_cast<int>(i)}) : shmem::kEagerLimit;
        EXPECT_EQ(choice[i].eager, most);
      }
    }
  }
}

TEST(CollectiveTable, ChoosesTheFastestOfTheMeasurements) {
  bench::MeasuredCollective measured{.collective = Collective::kReduce, .pes = 2};
  measured.direct = {{8, 2.0}, {32, 2.0}, {96, 2.0}, {256, 2.1}, {4096, 5}, {65536, 40}};
  measured.eager = {{8, 1.0}, {32, 1.5}, {96, 2.5}, {256, 2.1}, {4096, 5}, {65536, 40}};
  measured.scatter_allgather = {{8, 1.0}, {32, 3}, {96, 3}, {256, 3}, {4096, 4}, {65536, 30}};
  const auto table = CollectiveTable::parse(bench::make_collective_table({measured}, "of a test"), "made").value();
  ASSERT_EQ(table.rows().size(), 1U);
  EXPECT_EQ(to_string(table.rows()[0]), "reduce     alone           *    eager=32 scatter-allgather=4096");
}

TEST(CollectiveTable, NamesTheLineOfAnError) {
  const auto expect = [](const std::string& row, const std::string& what) {
    const auto table = CollectiveTable::parse(std::string(shmem::kCollectiveFormat) + "\n" + row + "\n", "/a/file");
    ASSERT_FALSE(table) << row;
    EXPECT_NE(table.error().text.find("/a/file, line 2: " + what), std::string::npos) << table.error().text;
  };
  expect("gather alone * eager=8", "\"gather\"");
  expect("reduce lonely *", "\"lonely\"");
  expect("reduce alone many", "\"many\"");
  expect("reduce alone * eager=1025", "\"eager=1025\" is not eager=N with N from 0 to 1024");
  expect("alltoall alone * eager=8193", "\"eager=8193\"");
  expect("reduce alone * scatter-allgather=-1", "\"scatter-allgather=-1\"");
  expect("reduce alone * fast", "\"fast\"");
  EXPECT_NE(CollectiveTable::in_force("/nowhere/at/all").error().text.find("SHMEM_COLLECTIVE_TUNING"),
            std::string::npos);
}

TEST(TuningTable, NamesAFileThatCannotBeRead) {
  const auto table = TuningTable::in_force("/nowhere/at/all");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().text.find("/nowhere/at/all: No such file"), std::string::npos) << table.error().text;
}

void expect_no_table(const std::string& file, const std::string& what) {
  const auto barriers = TuningTable::in_force(file);
  ASSERT_FALSE(barriers) << file;
  const auto collectives = CollectiveTable::in_force(file);
  ASSERT_FALSE(collectives) << file;
  for (const auto& [text, variable] : {std::pair{barriers.error().text, "(SHMEM_BARRIER_TUNING)"},
                                       std::pair{collectives.error().text, "(SHMEM_COLLECTIVE_TUNING)"}}) {
    for (const std::string& part : {file, what, std::string(variable)}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(TuningTables, RefuseFilesThatAreNotText) {
  const test_support::TempDir dir;
  for (const auto& [file, problem] : test_support::make_wrong_files(dir.path(), "libshmem-barrier-tuning 1\n")) {
    expect_no_table(file, problem);
  }
}

}  // namespace
