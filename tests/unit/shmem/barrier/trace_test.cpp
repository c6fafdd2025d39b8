// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/trace.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/json.hpp"
#include "tests/support/process.hpp"

namespace {

using shmem::Trace;
using shmem::TraceFile;
using test_support::Json;

class TraceTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return dir_.file("trace.json"); }
  [[nodiscard]] TraceFile open(const std::string& job = "1-1") const { return TraceFile::open(path(), job).value(); }
  [[nodiscard]] std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path()).rdbuf();
    return all.str();
  }
  /// Throws if the file is not valid JSON.
  [[nodiscard]] Json read() const { return Json::parse(text()); }

  test_support::TempDir dir_;
};

TEST_F(TraceTest, IsValidFromTheBeginning) {
  const auto file = open();
  EXPECT_EQ(read().size(), 1U);
}

TEST_F(TraceTest, HasTheEventsOfAllWriters) {
  auto one = open();
  auto two = open();
  ASSERT_TRUE(one.append("{\"a\":1},\n{\"a\":2}"));
  EXPECT_EQ(read().size(), 3U);
  ASSERT_TRUE(two.append("{\"a\":3}"));
  ASSERT_TRUE(one.append("{\"a\":4}"));
  const auto all = read();
  ASSERT_EQ(all.size(), 5U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["a"], i);
  }
}

TEST_F(TraceTest, AcceptsManyWritersAtOnce) {
  constexpr int kWriters = 8;
  constexpr int kEvents = 50;
  std::vector<std::thread> writers;
  writers.reserve(static_cast<std::size_t>(kWriters));
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      Trace trace(open(), i, 0);
      for (int k = 0; k < kEvents; ++k) {
        trace.add({0, static_cast<std::uint64_t>(k), "npu_v3", 1000, 2000, i, 0});
        if (k % 7 == 0) {
          trace.flush();
        }
      }
    });
  }
  for (auto& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(read().size(), 1U + kWriters * (kEvents + 1));
}

TEST_F(TraceTest, DescribesABarrier) {
  // A locale with another decimal point, if it is installed, must not change the numbers.
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  {
    Trace trace(open(), 3, 1'000'000);
    trace.name_team(5, 8);
    trace.add({5, 17, "gba", 2'034'056, 2'034'567, 6, 1'007});
  }
  std::setlocale(LC_ALL, "C");
  const auto all = read();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1]["name"], "process_name");
  EXPECT_EQ(all[1]["args"]["name"], "PE 3 (pid " + std::to_string(::getpid()) + ")");
  EXPECT_EQ(all[2]["name"], "thread_name");
  EXPECT_EQ(all[2]["tid"], 5);
  EXPECT_EQ(all[2]["args"]["name"], "team 5 (8 PEs)");
  const auto& barrier = all[3];
  EXPECT_EQ(barrier["ph"], "X");
  EXPECT_EQ(barrier["pid"], 3);
  EXPECT_DOUBLE_EQ(barrier["ts"].get<double>(), 1034.056);
  EXPECT_DOUBLE_EQ(barrier["dur"].get<double>(), 0.511);
  EXPECT_EQ(barrier["args"]["team"], 5);
  EXPECT_EQ(barrier["args"]["number"], 17);
  EXPECT_EQ(barrier["args"]["path"], "gba");
  EXPECT_EQ(barrier["args"]["last"], 6);
  EXPECT_DOUBLE_EQ(barrier["args"]["skew_us"].get<double>(), 1.007);
}

TEST_F(TraceTest, WritesBeforeItsBufferGrowsLarge) {
  Trace trace(open(), 0, 0);
  for (std::uint64_t k = 0; k < 2000; ++k) {
    trace.add({0, k, "npu_v3", 1000, 2000, 0, 0});
  }
  EXPECT_GT(read().size(), 1000U) << "written before flush() or the end";
}

TEST_F(TraceTest, RepairsTheEndAfterAWriterWasKilled) {
  auto file = open();
  ASSERT_TRUE(file.append("{\"a\":1}"));
  for (const std::string rest : {",\n{\"a\":2},\n{\"a\":", ",\n{\"a\":2}", ",", ""}) {
    auto torn = text();
    torn.resize(torn.size() - 3);
    std::ofstream(path()) << torn + rest;
    ASSERT_TRUE(file.append("{\"a\":9}")) << rest;
    EXPECT_EQ(read().back()["a"], 9) << rest;
  }
}

TEST_F(TraceTest, IsOverwrittenByAnotherJob) {
  {
    auto file = open("1-1");
    ASSERT_TRUE(file.append("{\"a\":1}"));
    auto next = open("1-2");
    EXPECT_EQ(read().size(), 1U);
    const auto late = file.append("{\"a\":2}");
    ASSERT_FALSE(late);
    EXPECT_NE(late.error().text.find("another job"), std::string::npos) << late.error().text;
    ASSERT_TRUE(next.append("{\"a\":3}"));
  }
  EXPECT_EQ(read().size(), 2U);
  std::ofstream(path()) << "something longer that was never a trace, but stands in its place";
  const auto file = open();
  EXPECT_EQ(read().size(), 1U);
}

TEST_F(TraceTest, RefusesPathsThatCannotBeWritten) {
  const auto folder = TraceFile::open(dir_.path(), "1");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().text.find("SHMEM_TRACE=" + dir_.path() + " cannot be opened: Is a directory"),
            std::string::npos)
      << folder.error().text;
  const auto nowhere = TraceFile::open(dir_.file("no/such/folder"), "1");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, std::errc::no_such_file_or_directory);
  ASSERT_EQ(::mkfifo(dir_.file("fifo").c_str(), 0600), 0);
  const auto fifo = TraceFile::open(dir_.file("fifo"), "1");
  ASSERT_FALSE(fifo);
  EXPECT_NE(fifo.error().text.find("not a regular file"), std::string::npos) << fifo.error().text;
  EXPECT_FALSE(TraceFile::open("/dev/full", "1"));
}

}  // namespace
